//! The subcommands: one file each, whose argument struct's doc comment is the help text.

mod demo;
mod demo_chain;
mod demo_hot;
mod demo_scale;
mod origin;
mod reproduce;
mod sim;

/// The command to run.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Demo(demo::DemoArgs),
    DemoChain(demo_chain::DemoChainArgs),
    DemoHot(demo_hot::DemoHotArgs),
    DemoScale(demo_scale::DemoScaleArgs),
    Origin(origin::OriginArgs),
    Sim(Box<sim::SimArgs>),
    Reproduce(reproduce::ReproduceArgs),
}

impl Command {
    /// Does it. Wrong usage is a [`UsageError`](flashweir_config::command::exit::UsageError) or a
    /// `ConfigError`.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Demo(arguments) => arguments.run(),
            Self::DemoChain(arguments) => arguments.run(),
            Self::DemoHot(arguments) => arguments.run(),
            Self::DemoScale(arguments) => arguments.run(),
            Self::Origin(arguments) => arguments.run(),
            Self::Sim(arguments) => arguments.run(),
            Self::Reproduce(arguments) => arguments.run(),
        }
    }
}
