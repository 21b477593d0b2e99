//! Goal: a deadline travels with its request, shorter at each hop, and what is too late is not sent.

use crate::scene::{Egress, ScriptedNode};

#[test]
fn deadlines_travel_and_what_is_too_late_is_not_sent() {
    let node = ScriptedNode::start();
    let egress = Egress::start(&[node.upstream.url()], "deadline_ms = 9000");
    let told = || -> u64 {
        let request = node.upstream.last_request();
        request.field("flashweir-deadline").expect("a deadline").parse().expect("milliseconds")
    };
    assert_eq!(egress.get().status(), 200);
    assert!((1..=9_000).contains(&told()), "{}", told());
    assert_eq!(egress.get_with("Flashweir-Deadline: 60000\r\n").status(), 200);
    assert!((9_001..=60_000).contains(&told()), "{}", told());
    let late = egress.get_with("Flashweir-Deadline: 0\r\n");
    assert_eq!(late.status(), 504);
    assert!(
        late.field("flashweir-egress").is_some_and(|field| field.starts_with("deadline; target=\"api\""))
    );
    let wrong = egress.get_with("Flashweir-Deadline: soon\r\n");
    assert_eq!(wrong.status(), 400);
    assert_eq!(wrong.text(), "Flashweir-Deadline: expected whole milliseconds from 0 to 86400000\n");
    assert_eq!(node.count(), 2);
}
