//! The engine for machines without a common gateway that leads: NATS with JetStream. The gateway that holds
//! the lease leads; the others take over within seconds. There is no consensus of our own: the lease is a key
//! of a bucket, whose server decides who has it.
//!
//! | what | where |
//! |---|---|
//! | the lease | key `leader` of the bucket `SUBJECT_cluster`, in which entries live for [`LEASE`]: created by who finds none, renewed by its revision |
//! | the term | the time at which the lease was got, milliseconds, or one more than the newest term that is known: revisions begin again with a server |
//! | reports | `SUBJECT.cluster.report`, ten a second and gateway, read by the leader |
//! | shares | `SUBJECT.cluster.share`, one a round, read by all |
//!
//! The bucket is in the server's memory, so a server that starts again has none: a gateway that finds no
//! bucket makes it again. A leader whose renewal is refused, or is not answered within [`LEASE`], stops to
//! lead; what it might still send is of an older term and dropped. Messages have the same seals as with the
//! local engine: the right to publish on the server is no right to divide a limit.

use super::elected::Elected;
use super::received::refuse;
use super::{Cluster, REPORT_EVERY, STEP_EVERY};
use crate::shared::Shared;
use async_nats::jetstream::kv::{Config as BucketConfig, CreateError, CreateErrorKind, Store};
use async_nats::jetstream::stream::StorageType;
use async_nats::{Client, ConnectOptions, Subscriber};
use bytes::Bytes;
use flashweir_core::{Duration, Instant};
use flashweir_runtime::unix_millis_now;
use flashweir_telemetry::BroadcastOutcome;
use futures_util::StreamExt as _;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use tokio::task::spawn_local;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

/// An entry of the bucket is gone this long after its last write: the longest time without a leader is this
/// and [`RENEW_EVERY`].
const LEASE: Duration = Duration::from_secs(2);
/// Between two renewals, and two tries of the others to get the lease: several fit into [`LEASE`].
const RENEW_EVERY: Duration = Duration::from_millis(400);
/// A server that has not answered by then is gone for this try.
const ANSWER_WITHIN: Duration = Duration::from_millis(800);
/// Between two tries to reach any server at all.
const CONNECT_EVERY: Duration = Duration::from_secs(1);
/// The key of the lease.
const KEY: &str = "leader";

type NatsError = Box<dyn std::error::Error + Send + Sync>;

/// State that the tasks of this engine share.
struct Gateway {
    elected: Elected,
    client: Client,
    subject: String,
}

/// Takes part in the cluster until the future is dropped.
pub(super) async fn run(shared: Arc<Shared>, cluster: Arc<Cluster>, nats: flashweir_config::Nats) {
    loop {
        cluster.publish(&shared);
        match join(&shared, &cluster, &nats).await {
            Ok((gateway, bucket, reports, shares)) => {
                tracing::info!(subject = nats.subject, "connected to NATS");
                spawn_local(gateway.clone().hold_lease(bucket));
                spawn_local(gateway.clone().take_reports(reports));
                spawn_local(gateway.clone().take_shares(shares));
                return gateway.work().await;
            }
            Err(error) => {
                refuse(
                    &shared,
                    format_args!(
                        "NATS cannot be used: {error}; version 2.10 or later with JetStream is needed"
                    ),
                );
                shared.telemetry.control().cluster_broadcasts.increment(BroadcastOutcome::Missing);
                sleep(CONNECT_EVERY).await;
            }
        }
    }
}

async fn join(
    shared: &Arc<Shared>,
    cluster: &Arc<Cluster>,
    nats: &flashweir_config::Nats,
) -> Result<(Rc<Gateway>, Store, Subscriber, Subscriber), NatsError> {
    let servers = nats.servers.split(',').map(str::parse::<async_nats::ServerAddr>);
    let servers = servers.collect::<Result<Vec<_>, _>>()?;
    let options = ConnectOptions::new().name(&cluster.name).request_timeout(Some(ANSWER_WITHIN));
    // Reports that pile up while the connection is away are of no use afterwards.
    let client = timeout(2 * ANSWER_WITHIN, options.connect(servers)).await??;
    let bucket = open_bucket(&client, &format!("{}_cluster", nats.subject)).await?;
    let gateway = Gateway {
        elected: Elected::new(shared, cluster),
        client: client.clone(),
        subject: format!("{}.cluster", nats.subject),
    };
    let reports = client.subscribe(gateway.subject_of("report")).await?;
    let shares = client.subscribe(gateway.subject_of("share")).await?;
    Ok((Rc::new(gateway), bucket, reports, shares))
}

/// The bucket of the lease, made where the server has none.
async fn open_bucket(client: &Client, name: &str) -> Result<Store, NatsError> {
    let config = BucketConfig {
        bucket: name.to_owned(),
        history: 1,
        max_age: LEASE,
        storage: StorageType::Memory,
        ..BucketConfig::default()
    };
    Ok(async_nats::jetstream::new(client.clone()).create_key_value(config).await?)
}

impl Gateway {
    fn subject_of(&self, what: &str) -> String {
        format!("{}.{what}", self.subject)
    }

    /// Reports, and divides while it leads.
    async fn work(self: Rc<Self>) {
        let mut steps = interval(STEP_EVERY);
        steps.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (report, share) = (self.subject_of("report"), self.subject_of("share"));
        let keys = &self.elected.cluster.keys;
        let mut report_at = Instant::ZERO;
        loop {
            steps.tick().await;
            let now = self.elected.now();
            if now >= report_at {
                report_at = now + REPORT_EVERY;
                let sealed = self.elected.report(now).seal(keys);
                self.send(&report, sealed).await;
            }
            if let Some(broadcast) = self.elected.step(now) {
                self.send(&share, broadcast.seal(keys)).await;
            }
        }
    }

    /// A message that cannot be sent now is not sent: the next one is newer.
    async fn send(&self, subject: &str, bytes: Vec<u8>) {
        let sent = timeout(REPORT_EVERY, self.client.publish(subject.to_owned(), Bytes::from(bytes))).await;
        if !matches!(sent, Ok(Ok(()))) {
            refuse(&self.elected.shared, format_args!("a message to the cluster could not be sent by NATS"));
        }
    }

    async fn take_reports(self: Rc<Self>, mut reports: Subscriber) {
        while let Some(message) = reports.next().await {
            // All gateways hear all reports.
            if self.elected.term().is_some() {
                // Counted there.
                let _refused = self.elected.take_report(&message.payload);
            }
        }
    }

    async fn take_shares(self: Rc<Self>, mut shares: Subscriber) {
        while let Some(message) = shares.next().await {
            self.elected.take_share(&message.payload, |broadcast| broadcast.answers == (0, 0));
        }
    }

    /// Gets the lease when no gateway has it, and keeps it.
    async fn hold_lease(self: Rc<Self>, mut bucket: Store) {
        let cluster = &self.elected.cluster;
        let name = Bytes::from(cluster.name.clone());
        let mut tries = interval(RENEW_EVERY);
        tries.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The revision of the last renewal, and when it was asked for.
        let held: Cell<Option<(u64, Instant)>> = Cell::new(None);
        loop {
            tries.tick().await;
            let asked_at = self.elected.now();
            let leads = self.elected.term().is_some();
            match held.get().filter(|_| leads) {
                Some((revision, renewed_at)) => {
                    let renewed = timeout(ANSWER_WITHIN, bucket.update(KEY, name.clone(), revision)).await;
                    match renewed {
                        Ok(Ok(revision)) => held.set(Some((revision, asked_at))),
                        // Refused, or unanswered until another gateway may have the lease.
                        Ok(Err(_)) => self.step_down(&held),
                        Err(_) if self.elected.now().saturating_since(renewed_at) >= LEASE => {
                            self.step_down(&held)
                        }
                        Err(_) => {}
                    }
                }
                None => match timeout(ANSWER_WITHIN, bucket.create(KEY, name.clone())).await {
                    Ok(Ok(revision)) => {
                        held.set(Some((revision, asked_at)));
                        self.begin_term(unix_millis_now().max(cluster.term().saturating_add(1)));
                    }
                    Ok(Err(error)) if !is_taken(&error) => self.restore_bucket(&mut bucket).await,
                    // Another gateway has the lease, or no server answers.
                    Ok(Err(_)) | Err(_) => {}
                },
            }
        }
    }

    /// A server that started again has lost the bucket. Where it is there, this changes nothing.
    async fn restore_bucket(&self, bucket: &mut Store) {
        match timeout(ANSWER_WITHIN, open_bucket(&self.client, &bucket.name)).await {
            Ok(Ok(opened)) => *bucket = opened,
            Ok(Err(error)) => {
                refuse(&self.elected.shared, format_args!("the lease cannot be had from NATS: {error}"))
            }
            // No server answers: the next try is soon.
            Err(_) => {}
        }
    }

    fn begin_term(&self, term: u64) {
        // The others learn the term, so that their reports count.
        let hello = self.elected.begin_term(term).seal(&self.elected.cluster.keys);
        let (client, subject) = (self.client.clone(), self.subject_of("share"));
        spawn_local(async move {
            // What is lost is said again by the first broadcast.
            let _ = client.publish(subject, Bytes::from(hello)).await;
        });
    }

    fn step_down(&self, held: &Cell<Option<(u64, Instant)>>) {
        held.set(None);
        self.elected.step_down();
    }
}

/// Another gateway has the lease.
fn is_taken(error: &CreateError) -> bool {
    error.kind() == CreateErrorKind::AlreadyExists
}
