//! `flashweir explain`.

mod readable;

use std::io::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, bail};
use flashweir_core::DecisionId;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Bytes;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use flashweir_config::command::exit::UsageError;

/// Tell why a request was refused: the decision, the limits, which one bound and the numbers behind it.
///
/// The id is in the refusal's `Flashweir-Decision` field. Each worker remembers its latest decisions only.
#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    /// The decision's id: 13 letters and digits.
    id: String,
    /// The admin address of the gateway that decided.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9900")]
    admin: SocketAddr,
    /// Print the answer as JSON, as the gateway gave it.
    #[arg(long)]
    json: bool,
}

/// An explanation is a few hundred bytes; a longer answer of another server at that address is not read to
/// its end.
const ANSWER_BYTES: usize = 1 << 20;
/// The gateway answers in milliseconds even under overload.
const PATIENCE: Duration = Duration::from_secs(5);

impl ExplainArgs {
    /// Asks the gateway and prints its answer.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let id: DecisionId =
            self.id.parse().map_err(|error| UsageError::new(format!("`{}` is {error}", self.id)))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (status, answer) = runtime
            .block_on(async { tokio::time::timeout(PATIENCE, ask(self.admin, id)).await })
            .map_err(|_elapsed| anyhow::anyhow!("no answer within {} s", PATIENCE.as_secs()))
            .and_then(|answer| answer)
            .with_context(|| format!("cannot ask the gateway at {} (is --admin right?)", self.admin))?;
        if status != StatusCode::OK {
            bail!("{}", readable::refusal(status.as_u16(), &answer));
        }
        let text =
            if self.json { format!("{}\n", answer.trim_end()) } else { readable::explanation(&answer)? };
        std::io::stdout().write_all(text.as_bytes())?;
        Ok(())
    }
}

/// One GET on its own connection.
async fn ask(admin: SocketAddr, id: DecisionId) -> anyhow::Result<(StatusCode, String)> {
    let stream = TcpStream::connect(admin).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let request = Request::get(format!("/explain/{id}"))
        .header(hyper::header::HOST, admin.to_string())
        .header(hyper::header::ACCEPT, "application/json")
        .body(Empty::<Bytes>::new())?;
    let exchange = async {
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES).collect().await;
        let body = body.map_err(|error| anyhow::anyhow!("the answer cannot be read: {error}"))?;
        Ok((status, String::from_utf8_lossy(&body.to_bytes()).into_owned()))
    };
    tokio::pin!(connection);
    tokio::pin!(exchange);
    tokio::select! {
        answer = &mut exchange => answer,
        // The connection may end before the last of the answer was taken from it.
        ended = &mut connection => { ended?; exchange.await }
    }
}
