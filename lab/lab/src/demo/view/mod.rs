//! Display while the demo runs: a live view on a terminal, plain lines elsewhere.

mod plain;
mod terminal;

use crate::demo::watch::State;
use flashweir_load::Progress;

/// Either way of showing the demo.
pub(crate) enum View {
    /// The whole terminal.
    Terminal(Box<terminal::TerminalView>),
    /// Lines on stderr.
    Plain(plain::PlainView),
}

/// One moment of a visit.
pub(crate) struct Frame<'a> {
    /// Name of this visit.
    pub(crate) visit: &'static str,
    /// Phase of the crowd.
    pub(crate) phase: &'static str,
    /// The load generator's figures.
    pub(crate) progress: &'a Progress,
    /// Flashweir's status, when it is there.
    pub(crate) state: Option<State>,
    /// The origin's measured capacity.
    pub(crate) capacity_rps: f64,
    /// Maximum of the rate axis.
    pub(crate) peak_rps: f64,
}

/// Decision to go on or to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Nothing was pressed.
    GoOn,
    /// The watching person wants the demo to end.
    Stop,
}

impl View {
    /// The live view if `live`, which must only be asked for when stdout is a terminal.
    pub(crate) fn new(live: bool) -> std::io::Result<Self> {
        if live {
            Ok(Self::Terminal(Box::new(terminal::TerminalView::open()?)))
        } else {
            Ok(Self::Plain(plain::PlainView::default()))
        }
    }

    /// Says what is being prepared.
    pub(crate) fn announce(&mut self, what: &str) -> std::io::Result<()> {
        match self {
            Self::Terminal(view) => view.announce(what),
            Self::Plain(view) => {
                view.announce(what);
                Ok(())
            }
        }
    }

    /// Shows a moment.
    pub(crate) fn show(&mut self, frame: &Frame<'_>) -> std::io::Result<Wish> {
        match self {
            Self::Terminal(view) => view.show(frame),
            Self::Plain(view) => {
                view.show(frame);
                Ok(Wish::GoOn)
            }
        }
    }
}

/// Flashweir's status, in a few words.
fn said(state: Option<&State>) -> String {
    state.map_or_else(String::new, |state| {
        let limit = state.limit.map_or("no limit".to_owned(), |limit| format!("{limit} at once"));
        format!("{} ({}), {limit}, {} wait", state.mode, state.cause, state.waiting)
    })
}
