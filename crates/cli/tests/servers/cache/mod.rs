//! The cache, through the real binary: what HTTP allows, what one user may never see of another, and crowds.

mod crowd;
mod fifty_times;
mod flights;
mod grace;
mod poison;
mod private;
mod purge;
mod rules;
mod scene;
mod shortage;
mod stale;
