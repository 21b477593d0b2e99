//! Shortage of a machine, or of the part of one that a service may use.

/// The resource that work waits for. An agent beside the service finds it; the verdict names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Shortage {
    /// Nothing of the machine's. If requests wait all the same, they wait for a lock, a database, or another
    /// service.
    #[default]
    Nothing,
    /// Processor time: all that may be used is used, or the one thread that does the work is always busy.
    Processor,
    /// Memory: work waits for pages to be freed or read back.
    Memory,
    /// The disk: work waits for reads and writes.
    Disk,
}

impl Shortage {
    /// All of them, in the order of their discriminants.
    pub const ALL: [Self; 4] = [Self::Nothing, Self::Processor, Self::Memory, Self::Disk];

    /// The one spelling used in reports, metrics, logs and `/status`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Processor => "processor",
            Self::Memory => "memory",
            Self::Disk => "disk",
        }
    }

    /// The shortage of that spelling.
    ///
    /// ```
    /// use flashweir_core::Shortage;
    /// assert_eq!(Shortage::named("disk"), Some(Shortage::Disk));
    /// assert_eq!(Shortage::named("network"), None);
    /// ```
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|shortage| shortage.as_str() == name)
    }
}
