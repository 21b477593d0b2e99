//! Scope of a statistic: the run, or a part of it.

/// Scope of a statistic.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// All classes over the whole run.
    Run,
    /// Tries of all classes that began within a window of the scenario.
    Window(String),
    /// One class.
    Class(Within),
    /// One link, both ways.
    Link(Within),
    /// One long transfer.
    Transfer(Within),
    /// One source of datagrams.
    Datagrams(Within),
}

/// A class or something of the network, over the whole run or a window.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Within {
    /// The window; none: the whole run.
    pub window: Option<String>,
    /// The name of the class, link, transfer or source.
    pub name: String,
}

impl Scope {
    /// The part before the dot, which may contain dots; empty for the whole run.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Run => String::new(),
            Self::Window(name) => name.clone(),
            Self::Class(Within { window, name })
            | Self::Link(Within { window, name })
            | Self::Transfer(Within { window, name })
            | Self::Datagrams(Within { window, name }) => match window {
                Some(window) => format!("{window}.{name}"),
                None => name.clone(),
            },
        }
    }

    /// The window of the scope, if it is not the whole run.
    #[must_use]
    pub fn window(&self) -> Option<&str> {
        match self {
            Self::Run => None,
            Self::Window(name) => Some(name),
            Self::Class(within) | Self::Link(within) | Self::Transfer(within) | Self::Datagrams(within) => {
                within.window.as_deref()
            }
        }
    }

    /// Kind of the scope, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Run => "the run",
            Self::Window(_) => "a window",
            Self::Class(Within { window: None, .. }) => "a class",
            Self::Class(_) => "a class in a window",
            Self::Link(_) => "a link",
            Self::Transfer(_) => "a transfer",
            Self::Datagrams(_) => "datagrams",
        }
    }
}
