//! Display of a run in progress: a view of the whole terminal, or lines where there is none.

mod history;
mod lines;
mod picture;
mod screen;

use crate::{Progress, StopFlag};
use lines::ProgressLines;
use screen::Screen;
use std::io::{self, IsTerminal};

pub(crate) use screen::give_terminal_back;

/// Shows progress.
pub(crate) struct Live(Face);

enum Face {
    Screen(Box<Screen>),
    Lines(ProgressLines),
}

impl Live {
    /// The whole terminal if `view` is wanted and both stdout and stderr are one, else lines on stderr.
    ///
    /// The view takes the keyboard: q, Escape and the first Ctrl-C stop the run through `stop`, the second
    /// Ctrl-C ends the program. Code that ends the program otherwise must call [`give_terminal_back`] first.
    pub(crate) fn start(title: String, view: bool, stop: StopFlag) -> Self {
        let on_terminal = io::stderr().is_terminal();
        let screen = (view && on_terminal && io::stdout().is_terminal())
            .then(|| Screen::open(title, stop))
            // A terminal that cannot be drawn on still shows lines.
            .and_then(Result::ok);
        Self(match screen {
            Some(screen) => Face::Screen(Box::new(screen)),
            None => Face::Lines(ProgressLines::new(on_terminal)),
        })
    }

    /// Shows a moment.
    pub(crate) fn show(&mut self, progress: &Progress) {
        match &mut self.0 {
            Face::Screen(screen) => screen.show(progress),
            Face::Lines(lines) => lines.show(progress),
        }
    }

    /// Leaves the terminal as it was.
    pub(crate) fn end(self) {
        match self.0 {
            Face::Screen(_) => give_terminal_back(),
            Face::Lines(lines) => lines.end(),
        }
    }
}
