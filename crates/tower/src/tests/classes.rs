//! Classes in a crowd.

use super::service::{TARGET, Workers, crowd};
use crate::{AdmissionLayer, Ask, Class, Settings};
use std::time::Duration;
use tokio::time::Instant;
use tower_layer::Layer as _;

/// Goal: in a crowd the class that is worth more is served whole, and the other gets the rest. Method: 30
/// checkouts and 400 pages a second before a service that serves 80.
#[tokio::test(start_paused = true)]
async fn the_class_worth_more_goes_first() {
    let settings =
        Settings { target: TARGET, classes: vec![Class::new("checkout", 10.0), Class::new("browse", 1.0)] };
    let layer = AdmissionLayer::with_settings(&settings).expect("settings");
    let layer =
        layer.classify(|head| Ask { class: u8::from(head.uri.path() != "/checkout"), ..Ask::default() });
    let service = layer.layer(Workers::new(4, Duration::from_millis(50)));
    let (from, lasts) = (Instant::now() + Duration::from_secs(10), Duration::from_secs(20));
    let crowds = tokio::join!(crowd(&service, "/checkout", 30.0, lasts), crowd(&service, "/", 400.0, lasts));
    let (checkouts, pages) = (crowds.0.met(from, TARGET).await, crowds.1.met(from, TARGET).await);
    assert!(checkouts.in_time >= checkouts.all() - 3, "{} of {}", checkouts.in_time, checkouts.all());
    assert!(pages.in_time as f64 >= 0.9 * 50.0 * 10.0, "{} of {}", pages.in_time, pages.all());
}
