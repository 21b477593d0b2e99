//! The terminal while the view has it, and its keys.

use super::history::History;
use super::picture;
use crate::{Progress, StopFlag};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use std::io::{self, Stderr};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// True while the view has the terminal. One for the process, as the terminal is.
static TAKEN: AtomicBool = AtomicBool::new(false);
/// The panic hook is set once, however many views a process opens.
static HOOK: Once = Once::new();
/// 128 and the number of SIGINT, as shells count.
const EXIT_INTERRUPTED: i32 = 130;

/// Draws on stderr, so that stdout holds the result alone; the terminal is given back when dropped.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Stderr>>,
    title: String,
    history: History,
    stop: StopFlag,
}

/// Command of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    /// End the run with its report.
    Stop,
    /// The same, and once the run is ending, end the program.
    Interrupt,
}

impl Screen {
    /// Takes the terminal.
    pub(super) fn open(title: String, stop: StopFlag) -> io::Result<Self> {
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                give_terminal_back();
                before(panic);
            }));
        });
        give_back_on_signal()?;
        enable_raw_mode()?;
        TAKEN.store(true, Ordering::SeqCst);
        let opened = execute!(io::stderr(), EnterAlternateScreen)
            .and_then(|()| Terminal::new(CrosstermBackend::new(io::stderr())));
        match opened {
            Ok(terminal) => Ok(Self { terminal, title, history: History::default(), stop }),
            Err(error) => {
                give_terminal_back();
                Err(error)
            }
        }
    }

    pub(super) fn show(&mut self, progress: &Progress) {
        self.history.gather(progress);
        self.obey();
        // Another thread may have given the terminal back, to write a message.
        if TAKEN.load(Ordering::SeqCst) {
            let shown = picture::Shown {
                title: &self.title,
                progress,
                history: &self.history,
                is_stopping: self.stop.is_set(),
            };
            // A terminal that has gone is no reason to end the run; the size is asked for each time.
            let _ = self.terminal.draw(|frame| picture::draw(frame, &shown));
        }
    }

    /// Does what the keys pressed since the last look ask for; raw mode turns Ctrl-C into one of them.
    fn obey(&self) {
        // Without a readable terminal there are no keys; signals still end the run.
        while event::poll(Duration::ZERO).unwrap_or(false) {
            let Ok(event) = event::read() else { return };
            match wish(&event) {
                Some(Wish::Interrupt) if self.stop.is_set() => {
                    give_terminal_back();
                    std::process::exit(EXIT_INTERRUPTED);
                }
                Some(Wish::Stop | Wish::Interrupt) => self.stop.stop(),
                None => {}
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_terminal_back();
    }
}

/// Leaves the terminal as it was before the view; does nothing when there is no view. Of any thread.
pub(crate) fn give_terminal_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        // A terminal that takes no commands cannot show the error.
        let _ = disable_raw_mode();
        let _ = execute!(io::stderr(), LeaveAlternateScreen, Show);
    }
}

/// From now on SIGTERM and SIGHUP, which end the program, leave the terminal as it was.
fn give_back_on_signal() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let (mut terminate, mut hang_up) = {
        let _context = runtime.enter();
        (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?)
    };
    let wait = move || {
        let kind = runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => SignalKind::terminate(),
                _ = hang_up.recv() => SignalKind::hangup(),
            }
        });
        give_terminal_back();
        std::process::exit(128 + kind.as_raw_value());
    };
    // Ends with the program.
    std::thread::Builder::new().name("load-terminal".to_owned()).spawn(wait).map(drop)
}

fn wish(event: &Event) -> Option<Wish> {
    match event {
        Event::Key(KeyEvent { code, modifiers, kind: KeyEventKind::Press, .. }) => match code {
            KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => Some(Wish::Interrupt),
            KeyCode::Char('q') | KeyCode::Esc => Some(Wish::Stop),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_end_a_run_are_known_from_others() {
        let key = |code, modifiers| wish(&Event::Key(KeyEvent::new(code, modifiers)));
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Wish::Interrupt));
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::NONE), None);
        assert_eq!(key(KeyCode::Char('q'), KeyModifiers::NONE), Some(Wish::Stop));
        assert_eq!(wish(&Event::Resize(1, 1)), None);
    }

    #[test]
    fn giving_back_what_was_never_taken_does_nothing() {
        give_terminal_back();
        assert!(!TAKEN.load(Ordering::SeqCst));
    }
}
