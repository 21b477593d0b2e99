//! The program `flashweir-load`, which `flashweir load` becomes.

fn main() -> std::process::ExitCode {
    flashweir_load::command::main()
}
