//! A server, a way to an upstream and an upstream that records, on one thread: the parts of the gateway that
//! read and write HTTP, with nothing between them that decides who is admitted.
//!
//! The upstream's connections live on from input to input, as they do in a gateway: what one request leaves
//! behind on a connection would meet the next.

use bytes::Bytes;
use flashweir_core::Rng;
use flashweir_http::fields::{prepare_request, prepare_response, prepare_trailers};
use flashweir_http::guarded::Protocol;
use flashweir_http::serve::{Connection, IncomingBody, ServeSettings, Server};
use flashweir_http::upstream::{PoolSettings, UpstreamBody, UpstreamSettings, UpstreamShared, Upstreams};
use http::{Request, Response, StatusCode, Version};
use http_body::Frame;
use http_body_util::combinators::MapFrame;
use http_body_util::{BodyExt as _, Either, Empty};
use std::cell::RefCell;
use std::convert::Infallible;
use std::mem::ManuallyDrop;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::task::{LocalSet, spawn_local};

use super::{LIMITS, STRANGER};

/// One input takes longer than this only if something waits for what never comes.
const HANGS_AFTER: Duration = Duration::from_secs(10);

/// The request's body on its way to the upstream.
type Upload = MapFrame<IncomingBody, fn(Frame<Bytes>) -> Frame<Bytes>>;
/// Body of a client's response.
type Download = Either<UpstreamBody<Upload>, Empty<Bytes>>;

/// See the module's documentation.
pub(super) struct World {
    runtime: Runtime,
    local: LocalSet,
}

thread_local! {
    // Never dropped: the runtime's own thread-local values may be gone when a thread ends.
    static WORLD: ManuallyDrop<World> = ManuallyDrop::new(World::new());
}

/// Runs with this thread's world.
pub(super) fn with<T>(use_it: impl FnOnce(&World) -> T) -> T {
    WORLD.with(|world| use_it(world))
}

/// The server, with the bounds of all targets.
pub(super) fn server() -> Rc<Server> {
    let settings = ServeSettings {
        head: LIMITS,
        head_timeout: HANGS_AFTER * 2,
        idle_timeout: HANGS_AFTER * 2,
        http2_streams_max: 100,
        http2_ping_after: HANGS_AFTER * 2,
    };
    Rc::new(Server::new(settings))
}

impl World {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        Self { runtime, local: LocalSet::new() }
    }

    /// Runs one input to its end.
    pub(super) fn run<T>(&self, input: impl Future<Output = T>) -> T {
        let bounded = async { tokio::time::timeout(HANGS_AFTER, input).await.expect("the connection hangs") };
        self.local.block_on(&self.runtime, bounded)
    }
}

/// A way to one upstream.
pub(super) type Way = Rc<Upstreams<Upload>>;

/// Starts an upstream that runs `script` for each connection, and the way to it.
pub(super) async fn upstream<F>(script: impl Fn(TcpStream) -> F + 'static) -> Way
where
    F: Future<Output = ()> + 'static,
{
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("a bound listener");
    spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            spawn_local(script(stream));
        }
    });
    let shared = UpstreamShared::new(settings(address)).expect("an upstream");
    Rc::new(Upstreams::new(shared, Rng::new(1)))
}

fn settings(address: SocketAddr) -> UpstreamSettings {
    UpstreamSettings {
        addresses: vec![format!("http://{address}").parse().expect("an address")],
        protocol: Protocol::Http1,
        connections_max: 64,
        connect_timeout: HANGS_AFTER,
        response_header_timeout: HANGS_AFTER / 2,
        response_fields_max: 256,
        body_idle_timeout: HANGS_AFTER / 2,
        pool_idle_timeout: HANGS_AFTER * 100,
        ca_file: None,
        // What an input breaks must not be felt by the next.
        pool: PoolSettings::default(),
    }
}

/// Forwards one request as the gateway does: the same preparation, the same pool, the same bodies.
async fn forward(
    way: Way,
    request: Request<IncomingBody>,
    counted: Rc<RefCell<u64>>,
) -> Result<Response<Download>, Infallible> {
    let (mut head, body) = request.into_parts();
    if let Err(error) = prepare_request(&mut head, &STRANGER) {
        return Ok(own(error.status()));
    }
    *counted.borrow_mut() += 1;
    let to_upstream: fn(Frame<Bytes>) -> Frame<Bytes> = |mut frame| {
        frame.trailers_mut().into_iter().for_each(prepare_trailers);
        frame
    };
    let sent = way.send(Request::from_parts(head, body.map_frame(to_upstream))).await;
    let (mut head, body) = match sent {
        Ok(response) => response.into_parts(),
        Err(error) => return Ok(own(error.kind.status())),
    };
    if head.status == StatusCode::SWITCHING_PROTOCOLS || prepare_response(&mut head).is_err() {
        return Ok(own(StatusCode::BAD_GATEWAY));
    }
    head.version = Version::HTTP_11;
    Ok(Response::from_parts(head, Either::Left(body)))
}

fn own(status: StatusCode) -> Response<Download> {
    let mut response = Response::new(Either::Right(Empty::new()));
    *response.status_mut() = status;
    response
}

/// An answer on its way.
type Answering = Pin<Box<dyn Future<Output = Result<Response<Download>, Infallible>>>>;

/// The service of one connection; `counted` is how many requests were sent on.
pub(super) fn service(
    way: Way,
    counted: Rc<RefCell<u64>>,
) -> impl Fn(Request<IncomingBody>, &Connection) -> Answering {
    move |request, _| Box::pin(forward(Rc::clone(&way), request, Rc::clone(&counted)))
}
