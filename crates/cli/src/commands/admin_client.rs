//! One question to the admin listener of a gateway, for the commands that print its answer.

use anyhow::{Context as _, bail};
use flashweir_config::AdminToken;
use flashweir_config::command::exit::UsageError;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Bytes;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tokio::net::TcpStream;

/// An answer is some kilobytes; a longer one of another server at that address is not read to its end.
const ANSWER_BYTES: usize = 1 << 20;
/// The gateway answers in milliseconds even under overload.
const PATIENCE: Duration = Duration::from_secs(5);

/// The admin listener of a gateway, and the secret it asks for.
#[derive(Debug, clap::Args)]
pub(super) struct AdminArgs {
    /// The admin address of the gateway.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9900")]
    admin: SocketAddr,
    /// The file with the secret that the gateway asks for (its admin.token_file).
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl AdminArgs {
    /// The answer to `GET path`.
    ///
    /// # Errors
    /// A token file that holds none; no answer, or one with another status than 200: the gateway's own
    /// message.
    pub(super) fn ask(&self, path: &str) -> anyhow::Result<String> {
        let token = self.token_file.as_deref().map(AdminToken::read_from).transpose();
        let token = token.map_err(|what| UsageError::new(format!("--token-file: {what}")))?;
        admin_answer(self.admin, path, token.as_ref())
    }
}

/// The answer to `GET path`.
///
/// # Errors
/// No answer, or one with another status than 200: the gateway's own message.
fn admin_answer(admin: SocketAddr, path: &str, token: Option<&AdminToken>) -> anyhow::Result<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (status, answer) = runtime
        .block_on(async { tokio::time::timeout(PATIENCE, ask(admin, path, token)).await })
        .map_err(|_elapsed| anyhow::anyhow!("no answer within {} s", PATIENCE.as_secs()))
        .and_then(|answer| answer)
        .with_context(|| format!("cannot ask the gateway at {admin} (is --admin right?)"))?;
    if status != StatusCode::OK {
        bail!("{}", refusal(status.as_u16(), &answer));
    }
    Ok(answer)
}

/// One GET on its own connection.
async fn ask(
    admin: SocketAddr,
    path: &str,
    token: Option<&AdminToken>,
) -> anyhow::Result<(StatusCode, String)> {
    let stream = TcpStream::connect(admin).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let mut request = Request::get(path)
        .header(hyper::header::HOST, admin.to_string())
        .header(hyper::header::ACCEPT, "application/json");
    if let Some(token) = token {
        request = request.header(hyper::header::AUTHORIZATION, token.authorization());
    }
    let request = request.body(Empty::<Bytes>::new())?;
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

/// The gateway's message in place of an answer: its `detail` or `error` where that is JSON.
fn refusal(status: u16, answer: &str) -> String {
    let json: Option<Value> = serde_json::from_str(answer).ok();
    let message =
        json.as_ref().and_then(|value| value["detail"].as_str().or_else(|| value["error"].as_str()));
    let message = message.unwrap_or(answer).trim();
    if message.is_empty() { format!("the gateway answered {status}") } else { message.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::refusal;

    #[test]
    fn a_refusal_tells_what_the_gateway_told() {
        assert_eq!(refusal(404, r#"{"error":"unknown decision"}"#), "unknown decision");
        assert_eq!(refusal(404, "unknown decision\n"), "unknown decision");
        assert_eq!(refusal(500, ""), "the gateway answered 500");
    }
}
