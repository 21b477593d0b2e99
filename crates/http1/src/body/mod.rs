//! Bodies: how long they are, which bytes are content, and the frames of chunks to send.

mod chunk;
mod reader;
mod writer;

pub use reader::{BodyPart, BodyReader, BodyStep};
pub use writer::{BodyWriter, CHUNK_END, ChunkPrefix, ContentFrame, LAST_CHUNK, LengthError, NO_TRAILERS};

pub use crate::head::BodyFraming;
