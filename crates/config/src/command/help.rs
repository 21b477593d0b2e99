//! Two helps of a command: one that fits a screen, and one with everything.

use clap::{Arg, ArgAction, Command, Parser};

/// Makes `-h` and `--help` of a command, and of all below it, print a line or two for each usual option, and
/// `--help-all` all options (those with `hide_short_help` too) with all that is said of them.
#[must_use]
pub fn with_help_all(command: Command) -> Command {
    let option = |id: &'static str, action, help| {
        Arg::new(id).long(id).action(action).help(help).help_heading(None::<&str>)
    };
    command
        .disable_help_flag(true)
        .arg(option("help", ArgAction::HelpShort, "Print this help").short('h'))
        .arg(option("help-all", ArgAction::HelpLong, "Print help with all options and details"))
        .mut_subcommands(with_help_all)
}

/// Parses this process's arguments, with both helps.
///
/// # Errors
/// Wrong usage; a help that was asked for is one of these, too.
pub fn parse<T: Parser>() -> Result<T, clap::Error> {
    T::from_arg_matches(&with_help_all(T::command()).try_get_matches()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn help(arguments: &[&str]) -> String {
        let usual = Arg::new("usual").long("usual").help("Usual").long_help("Usual, and more");
        let rare = Arg::new("rare").long("rare").help("Rare").hide_short_help(true);
        let command = Command::new("program").subcommand(Command::new("sub").args([usual, rare]));
        with_help_all(command).try_get_matches_from(arguments).expect_err("help").to_string()
    }

    #[test]
    fn the_usual_help_leaves_out_what_is_rare_and_the_whole_one_nothing() {
        for usual in ["-h", "--help"] {
            let text = help(&["program", "sub", usual]);
            assert!(text.contains("--usual") && !text.contains("--rare"), "{text}");
            assert!(text.contains("--help-all") && !text.contains("and more"), "{text}");
        }
        let whole = help(&["program", "sub", "--help-all"]);
        assert!(whole.contains("--rare") && whole.contains("Usual, and more"), "{whole}");
    }
}
