use super::*;
use crate::client::{Condition, FeedbackOutcome, GappingSettings};
use flashweir_core::{Duration, Rate};
use flashweir_feedback::{Feedback, Field, KeyRing};
use http::HeaderValue;

const KEYS: &str = "1 correct horse battery staple";

fn keys() -> Keys {
    Keys::parse(KEYS, "test").unwrap()
}

fn node() -> Node {
    Node::new(NodeSettings::new("shop", "api"), keys())
}

fn field(ring: &KeyRing<HmacKey>, sequence: u32, rate_rps: Option<f64>) -> HeaderMap {
    let rate = rate_rps.map(Rate::from_per_second);
    let ttl = Duration::from_secs(2);
    let feedback = Feedback { epoch: 1, sequence, from_rank: 1, severity: 1, rate, ttl };
    let field = Field::new(&feedback, ring, b"shop>api").unwrap();
    HeaderMap::from_iter([(
        http::HeaderName::from_static(flashweir_feedback::NAME),
        HeaderValue::from_bytes(field.as_bytes()).unwrap(),
    )])
}

async fn answer(node: &Node, headers: &HeaderMap) {
    node.admit(0, false, None).await.unwrap().answered(StatusCode::OK, headers);
}

/// Goal: a request that does not conform waits for its token and no longer than it may. Method: virtual time.
#[tokio::test(start_paused = true)]
async fn requests_wait_for_their_token() {
    let node = node();
    answer(&node, &field(&keys().ring(), 1, Some(10.0))).await;
    let begun = tokio::time::Instant::now();
    let admit = |rank| {
        let node = node.clone();
        tokio::spawn(
            async move { (node.admit(rank, false, None).await.map(drop), begun.elapsed().as_millis()) },
        )
    };
    let waiting: Vec<_> = [3, 3, 3, 3, 3, 2].into_iter().map(admit).collect();
    let mut outcomes = Vec::new();
    for task in waiting {
        outcomes.push(task.await.unwrap());
    }
    // The burst of two, then one each 100 ms; the more important one goes before those that wait.
    assert_eq!(outcomes[..2], [(Ok(()), 0), (Ok(()), 0)]);
    assert_eq!(outcomes[5], (Ok(()), 100));
    assert_eq!(outcomes[2], (Ok(()), 200));
    let late = Err(CallerRefusal::Limit(Reason::TooLate));
    assert!(outcomes[3].0 == late && outcomes[3].1 <= 250, "{outcomes:?}");
    assert_eq!(outcomes[4], (late, 0), "it could not go in time");
    let report = node.report();
    assert_eq!((report.arrived, report.sent, report.refused_limit, report.waiting), (7, 5, 2, 0));
    assert_eq!(node.load(), 0);
}

#[tokio::test(start_paused = true)]
async fn those_that_wait_go_at_once_when_the_limit_ends() {
    let settings = GappingSettings { wait_max: Duration::from_secs(60), ..GappingSettings::default() };
    let mut with = NodeSettings::new("shop", "api");
    with.endpoint.gapping = settings;
    let node = Node::new(with, keys());
    answer(&node, &field(&keys().ring(), 1, Some(0.5))).await;
    let begun = tokio::time::Instant::now();
    for _ in 0..2 {
        node.admit(1, false, None).await.map(drop).unwrap();
    }
    let waiting = tokio::spawn({
        let node = node.clone();
        async move { node.admit(1, false, None).await.map(drop) }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    answer(&node, &field(&keys().ring(), 2, None)).await;
    assert_eq!(waiting.await.unwrap(), Ok(()));
    assert_eq!(begun.elapsed().as_millis(), 300);
    assert_eq!(node.report().condition, Condition::Open);
}

#[tokio::test(start_paused = true)]
async fn keys_are_replaced_without_a_gap() {
    let node = node();
    let newer =
        Keys::parse("2 another horse battery staple\n1 correct horse battery staple", "test").unwrap();
    let newest = Keys::parse("2 another horse battery staple", "test").unwrap();
    answer(&node, &field(&keys().ring(), 1, Some(10.0))).await;
    node.set_keys(&newer);
    answer(&node, &field(&keys().ring(), 2, Some(10.0))).await;
    answer(&node, &field(&newer.ring(), 3, Some(10.0))).await;
    node.set_keys(&newest);
    answer(&node, &field(&newer.ring(), 4, Some(10.0))).await;
    assert_eq!(node.report().feedback.of(FeedbackOutcome::New), 4);
    answer(&node, &field(&keys().ring(), 5, None)).await;
    let report = node.report();
    assert_eq!((report.feedback.of(FeedbackOutcome::UnknownKey), report.condition), (1, Condition::Limited));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_answers_nothing_is_left_alone_but_for_trials() {
    let node = node();
    answer(&node, &HeaderMap::new()).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    for _ in 0..3 {
        node.admit(0, false, None).await.unwrap().unanswered();
    }
    assert!(matches!(node.admit(0, false, None).await, Err(CallerRefusal::Silent { .. })));
    tokio::time::sleep(Duration::from_millis(250)).await;
    assert!(node.is_trial_due());
    let trial = node.admit(9, false, None).await.unwrap();
    assert!(matches!(node.admit(0, false, None).await, Err(CallerRefusal::Silent { .. })));
    trial.answered(StatusCode::INTERNAL_SERVER_ERROR, &HeaderMap::new());
    assert_eq!(node.report().condition, Condition::Returning);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(node.report().condition, Condition::Open);
}

/// A caller that gives up while it waits leaves its place and its token to others.
#[tokio::test(start_paused = true)]
async fn a_request_that_gives_up_holds_nobody_up() {
    let node = node();
    answer(&node, &field(&keys().ring(), 1, Some(10.0))).await;
    for _ in 0..2 {
        node.admit(1, false, None).await.map(drop).unwrap();
    }
    let impatient = tokio::time::timeout(Duration::from_millis(50), node.admit(1, false, None)).await;
    assert!(impatient.is_err());
    let begun = tokio::time::Instant::now();
    assert!(node.admit(1, false, None).await.is_ok());
    assert_eq!(begun.elapsed().as_millis(), 50, "its token, and not the one after it");
    let report = node.report();
    assert_eq!((report.waiting, report.arrived, report.withdrawn), (0, 5, 1));
    // One whose deadline is too near for the next token is refused at once.
    let deadline = tokio::time::Instant::now() + Duration::from_millis(20);
    let refused = node.admit(1, false, Some(deadline)).await.map(drop);
    assert_eq!((refused, begun.elapsed().as_millis()), (Err(CallerRefusal::Limit(Reason::TooLate)), 50));
}
