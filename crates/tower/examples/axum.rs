//! A page that takes 50 ms of one of four workers, protected: `cargo run -p flashweir-tower --example axum`,
//! then `flashweir load http://127.0.0.1:3000/ --rate 400`. Its health page shows the limit: `curl
//! 127.0.0.1:3000/health`.

use axum::Router;
use axum::routing::get;
use flashweir_tower::{AdmissionLayer, Ask, Class, Settings, SettingsError};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind("127.0.0.1:3000").await?;
    axum::serve(listener, app()?).await?;
    Ok(())
}

pub(crate) fn app() -> Result<Router, SettingsError> {
    let settings = Settings {
        target: Duration::from_secs(1),
        classes: vec![Class::new("checkout", 10.0), Class::new("browse", 1.0)],
    };
    let admission = AdmissionLayer::with_settings(&settings)?.classify(|head| Ask {
        class: u8::from(!head.uri.path().starts_with("/checkout")),
        deadline: head.deadline(),
        ..Ask::default()
    });
    let workers = Arc::new(Semaphore::new(4));
    let page = move || async move {
        let _worker = workers.acquire().await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        "a page\n"
    };
    let health = admission.clone();
    Ok(Router::new()
        .route("/", get(page.clone()))
        .route("/checkout", get(page))
        .layer(admission.answering())
        // Behind the layer, so that it is always answered.
        .route("/health", get(move || async move { format!("{:#?}\n", health.status()) })))
}
