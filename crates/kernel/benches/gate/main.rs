//! What the kernel gate costs: nanoseconds per packet by itself, and processor time of the server's side for each
//! refused connection beside nginx that says the same.

mod packets;
mod refusals;

fn main() {
    packets::measure();
    refusals::measure();
}
