//! Cost of the kernel gate: nanoseconds per packet by itself, processor time of the server's side for each
//! refused connection beside nginx that says the same, and the remains of a million refusals.

mod arena;
mod carried;
mod clients;
mod leftovers;
mod packets;
#[path = "../shared/programs.rs"]
mod programs;
mod raw;
mod refusals;
mod refuser;
mod servers;

/// All parts, or those that are named (`cargo bench ... -- refusals`).
fn main() {
    let parts: [(&str, fn()); 4] = [
        ("packets", packets::measure),
        ("refusals", refusals::measure),
        ("floods", refusals::measure_floods),
        ("leftovers", leftovers::measure),
    ];
    let arguments: Vec<String> = std::env::args().collect();
    let names_one = parts.iter().any(|(name, _)| arguments.iter().any(|argument| argument == name));
    for (name, measure) in parts {
        if !names_one || arguments.iter().any(|argument| argument == name) {
            measure();
        }
    }
}
