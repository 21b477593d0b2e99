//! The subcommands: one file each, whose argument struct's doc comment is the help text.

mod agent;
mod config;
mod control;
mod demo;
mod demo_chain;
mod demo_hot;
mod demo_scale;
mod egress;
mod explain;
mod origin;
mod replay;
mod replica;
mod reproduce;
mod router;
mod run;
mod sim;

/// The command to run.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Run(run::RunArgs),
    Router(router::RouterArgs),
    Control(control::ControlArgs),
    Egress(egress::EgressArgs),
    Replica(Box<replica::ReplicaArgs>),
    Agent(agent::AgentArgs),
    Explain(explain::ExplainArgs),
    Config(config::ConfigArgs),
    Demo(demo::DemoArgs),
    DemoChain(demo_chain::DemoChainArgs),
    DemoHot(demo_hot::DemoHotArgs),
    DemoScale(demo_scale::DemoScaleArgs),
    Origin(origin::OriginArgs),
    Sim(Box<sim::SimArgs>),
    Replay(replay::ReplayArgs),
    Reproduce(reproduce::ReproduceArgs),
}

impl Command {
    /// Does it. Wrong usage is a [`UsageError`](flashweir_command::exit::UsageError) or a `ConfigError`.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Run(arguments) => arguments.run(),
            Self::Router(arguments) => arguments.run(),
            Self::Control(arguments) => arguments.run(),
            Self::Egress(arguments) => arguments.run(),
            Self::Replica(arguments) => arguments.run(),
            Self::Agent(arguments) => arguments.run(),
            Self::Explain(arguments) => arguments.run(),
            Self::Config(arguments) => arguments.run(),
            Self::Demo(arguments) => arguments.run(),
            Self::DemoChain(arguments) => arguments.run(),
            Self::DemoHot(arguments) => arguments.run(),
            Self::DemoScale(arguments) => arguments.run(),
            Self::Origin(arguments) => arguments.run(),
            Self::Sim(arguments) => arguments.run(),
            Self::Replay(arguments) => arguments.run(),
            Self::Reproduce(arguments) => arguments.run(),
        }
    }
}
