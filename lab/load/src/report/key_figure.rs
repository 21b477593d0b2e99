//! The few numbers a reader looks for first, in large type.

/// One number with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFigure {
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) note: String,
    pub(crate) tone: Tone,
}

/// Tone of a number. The colour only repeats what the note should say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// A fact.
    #[default]
    Plain,
    /// As it should be.
    Good,
    /// Not as it should be.
    Bad,
}

impl KeyFigure {
    /// A number as it should read, with its unit ("99.2 %", "14,356/s").
    #[must_use]
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into(), note: String::new(), tone: Tone::Plain }
    }

    /// Adds a few words below it: what it is compared with.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// Marks it.
    #[must_use]
    pub fn tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }

    /// The class name of its tone in the page's style.
    pub(crate) fn class(&self) -> &'static str {
        match self.tone {
            Tone::Plain => "plain",
            Tone::Good => "good",
            Tone::Bad => "bad",
        }
    }
}
