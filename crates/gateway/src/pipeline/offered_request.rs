//! An offered request as the pipeline is asked about it.

use flashweir_admission::fairness::RequestSigns;
use flashweir_admission::pipeline::{AdmissionRequest, Asking, ServiceKey};
use flashweir_admission::sentry::{Position, SentryRequest};
use flashweir_classify::Classified;
use flashweir_core::Instant;
use flashweir_http::client::ClientNetwork;

/// An offered request: what the stages need of it, and where it comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfferedRequest {
    /// As the stages get it. Whether its sender is over its share and whether the door is closed is found
    /// when the pipeline is asked.
    pub(crate) request: AdmissionRequest,
    /// Source network of its connection, if new ones from there may be refused should its clients ignore
    /// `Retry-After`.
    pub(crate) source: Option<ClientNetwork>,
}

impl OfferedRequest {
    /// A client's request for the service of this key, which asks for the first time. From `deadline` on its
    /// caller cannot use an answer; `signs` are its client's.
    pub(crate) fn new(
        key: ServiceKey,
        classified: &Classified,
        deadline: Option<Instant>,
        signs: RequestSigns,
        source: Option<ClientNetwork>,
    ) -> Self {
        let candidate = classified.candidate.filter(|candidate| !candidate.is_exempt);
        let request = AdmissionRequest {
            service: key,
            class: classified.class,
            ceiling_priority: classified.ceiling_priority,
            client_key: classified.client_key,
            url_class: classified.url_class,
            host_key: classified.host_key,
            person_key: classified.person_key,
            candidate: candidate.map(|candidate| SentryRequest {
                is_uncounted: false,
                class: candidate.class,
                url_class: classified.url_class,
                client_key: candidate.client_key,
                position: Position::Usual,
            }),
            is_beyond_sender_share: false,
            deadline,
            closed: None,
            signs,
            asking: Asking::First,
        };
        Self { request, source }
    }

    /// The same for a response that others wait for, too: its own deadline must not end that.
    pub(crate) fn without_deadline(mut self) -> Self {
        self.request.deadline = None;
        self
    }

    /// The same as the gateway's own request for a newer copy of a stored response. No client sent it: it is
    /// no demand, no client's share is charged with it, and its refusal is not counted.
    pub(super) fn refresh(mut self) -> Self {
        self.source = None;
        self.request.client_key = 0;
        self.request.candidate = None;
        self.request.signs = RequestSigns::default();
        self.request.asking = Asking::Refresh;
        self
    }
}
