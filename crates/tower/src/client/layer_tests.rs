use super::*;
use crate::client::{BudgetSettings, Keys, Node, NodeSettings};
use flashweir_feedback::caller::Condition;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A server that takes a while and says what it was asked.
#[derive(Clone, Default)]
struct Server {
    takes: Duration,
    field: Option<&'static str>,
    deadlines: Arc<Mutex<Vec<String>>>,
}

impl Service<Request<()>> for Server {
    type Response = Response<()>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<()>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        let server = self.clone();
        Box::pin(async move {
            assert_eq!(
                request.headers().get("flashweir-sender").map(HeaderValue::as_bytes),
                Some(&b"shop"[..])
            );
            let deadline =
                request.headers().get(DEADLINE).map(|value| value.to_str().unwrap_or("?").to_owned());
            server.deadlines.lock().unwrap().extend(deadline);
            tokio::time::sleep(server.takes).await;
            let mut response = Response::new(());
            if let Some(field) = server.field {
                response.headers_mut().insert("flashweir-overload", HeaderValue::from_static(field));
            }
            Ok(response)
        })
    }
}

/// The second example of docs/feedback.md: 12.5 a second from rank 1 on, for 2 s, signed.
const FIELD: &str = ":EWVT8QAAAAAqAQIAADDUB9BFDGr5VbbZAa+gQ90vZMOB:";

fn caller(budget: BudgetSettings) -> Caller {
    let keys = Keys::parse("1 correct horse battery staple", "test").unwrap();
    Caller::with_budget(Node::new(NodeSettings::new("shop", "api"), keys), budget)
}

fn request(extend: impl FnOnce(&mut Request<()>)) -> Request<()> {
    let mut request = Request::new(());
    extend(&mut request);
    request
}

fn insert<T: Clone + Send + Sync + 'static>(request: &mut Request<()>, extension: T) {
    request.extensions_mut().insert(extension);
}

fn why(result: Answered<(), Infallible>) -> Option<Why> {
    match result {
        Ok(_) => None,
        Err(OverloadError::Refused(refused)) => Some(refused.why),
        Err(OverloadError::Client(never)) => match never {},
    }
}

#[tokio::test(start_paused = true)]
async fn the_limit_of_a_response_holds_for_the_next_requests() {
    let caller = caller(BudgetSettings::default());
    let server = Server { field: Some(FIELD), ..Server::default() };
    let mut client = OverloadLayer::new(caller.clone()).layer(server);
    for _ in 0..20 {
        assert_eq!(why(client.call(Request::new(())).await), None, "waiting is short one at a time");
    }
    assert_eq!(caller.node().report().condition, Condition::Limited);
    let mut refused = 0;
    let all: Vec<_> = (0..50).map(|_| tokio::spawn(client.call(Request::new(())))).collect();
    for task in all {
        refused += usize::from(matches!(why(task.await.unwrap()), Some(Why::Limit(_))));
    }
    assert!((44..=49).contains(&refused), "{refused}");
    for important in [
        request(|it| insert(it, Rank(0))),
        request(|it| {
            it.headers_mut().insert("priority", HeaderValue::from_static("u=0"));
        }),
    ] {
        assert_eq!(why(client.call(important).await), None);
    }
}

#[tokio::test(start_paused = true)]
async fn deadlines_travel_and_those_that_are_over_are_not_sent() {
    let server = Server { takes: Duration::from_secs(5), ..Server::default() };
    let mut client = OverloadLayer::new(caller(BudgetSettings::default())).layer(server.clone());
    let within = |time| {
        let deadline = Deadline(Instant::now() + time);
        request(|it| insert(it, deadline))
    };
    let begun = Instant::now();
    assert_eq!(why(client.call(within(Duration::from_secs(9))).await), None);
    assert_eq!(why(client.call(within(Duration::from_secs(2))).await), Some(Why::NoAnswer));
    assert_eq!(begun.elapsed(), Duration::from_secs(7));
    assert_eq!(why(client.call(within(Duration::ZERO)).await), Some(Why::Deadline));
    assert_eq!(*server.deadlines.lock().unwrap(), ["9000", "2000"]);
}

#[tokio::test(start_paused = true)]
async fn retries_are_a_part_of_all_requests() {
    let mut client =
        OverloadLayer::new(caller(BudgetSettings { ratio: 0.1, reserve: 1 })).layer(Server::default());
    let again = || request(|it| insert(it, Attempt(1)));
    assert_eq!(why(client.call(again()).await), None, "the reserve");
    assert_eq!(why(client.call(again()).await), Some(Why::RetryBudget));
    for _ in 0..10 {
        assert_eq!(why(client.call(Request::new(())).await), None);
    }
    assert_eq!(why(client.call(again()).await), None);
    assert_eq!(why(client.call(again()).await), Some(Why::RetryBudget));
}

/// Goal: work that has begun is ended. Method: three calls under each trace, of which the first decides.
#[tokio::test(start_paused = true)]
async fn later_calls_of_a_trace_go_on_credit() {
    let server = Server { field: Some(FIELD), ..Server::default() };
    let mut client = OverloadLayer::new(caller(BudgetSettings::default())).layer(server);
    assert_eq!(why(client.call(Request::new(())).await), None);
    let of_trace = |trace: u32| {
        let value = format!("00-{trace:032x}-00f067aa0ba902b7-01");
        request(|it| drop(it.headers_mut().insert("traceparent", HeaderValue::try_from(value).unwrap())))
    };
    let mut users = Vec::new();
    for trace in 1..=90 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let calls = (0..3).map(|_| client.call(of_trace(trace))).collect::<Vec<_>>();
        users.push(tokio::spawn(async move {
            let mut completed = 0;
            for call in calls {
                // One after the other: a future does nothing before it is awaited.
                if why(call.await).is_some() {
                    break;
                }
                completed += 1;
            }
            completed
        }));
    }
    let (mut whole, mut broken) = (0, 0);
    for user in users {
        match user.await.unwrap() {
            0 => {}
            3 => whole += 1,
            _ => broken += 1,
        }
    }
    assert!((5..=15).contains(&whole) && broken == 0, "{whole} whole, {broken} broken");
}
