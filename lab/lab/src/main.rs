//! The program `flashweir-lab`, which commands of `flashweir` become.

fn main() -> std::process::ExitCode {
    flashweir_lab::main()
}
