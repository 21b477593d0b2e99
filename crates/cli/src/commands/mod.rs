//! The subcommands: one file each, whose argument struct's doc comment is the help text.

mod admin_client;
mod agent;
mod completions;
mod config;
mod control;
mod egress;
mod explain;
mod replay;
mod replica;
mod router;
mod run;
mod status;

/// The command to run.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Run(run::RunArgs),
    Router(router::RouterArgs),
    Control(control::ControlArgs),
    Egress(egress::EgressArgs),
    Replica(Box<replica::ReplicaArgs>),
    Agent(agent::AgentArgs),
    Status(status::StatusArgs),
    Explain(explain::ExplainArgs),
    Config(config::ConfigArgs),
    Replay(replay::ReplayArgs),
    Completions(completions::CompletionsArgs),
    #[command(hide = true)]
    Manual(completions::ManualArgs),
}

impl Command {
    /// Does it. Wrong usage is a [`UsageError`](flashweir_config::command::exit::UsageError) or a
    /// `ConfigError`.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Run(arguments) => arguments.run(),
            Self::Router(arguments) => arguments.run(),
            Self::Control(arguments) => arguments.run(),
            Self::Egress(arguments) => arguments.run(),
            Self::Replica(arguments) => arguments.run(),
            Self::Agent(arguments) => arguments.run(),
            Self::Status(arguments) => arguments.run(),
            Self::Explain(arguments) => arguments.run(),
            Self::Config(arguments) => arguments.run(),
            Self::Replay(arguments) => arguments.run(),
            Self::Completions(arguments) => arguments.run(),
            Self::Manual(arguments) => arguments.run(),
        }
    }
}
