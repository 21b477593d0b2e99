//! Options for the requests that people send.

mod list;

use super::inputs::{self, Inputs};
use super::recorded::RecordedArgs;
use super::values::header;
use crate::{LoadTarget, Paths, Prepared, Template};
use anyhow::{Context, ensure};
use bytes::Bytes;
use flashweir_config::command::numbers::within;
use flashweir_core::limits::LOAD_BODY_BYTES;
use flashweir_workload::documents::{Popularity, Sizes};
use flashweir_workload::recording::Recording;
use hyper::Method;
use hyper::header::{HeaderName, HeaderValue};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

/// Options for the requests that people send.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "What they ask for")]
#[group(id = "asking")]
pub(crate) struct AskingArgs {
    /// Ask for this path instead of the URL's; `{document}` and `{bytes}` as there.
    #[arg(long, value_name = "PATH", conflicts_with = "url_list", hide_short_help = true)]
    path: Option<String>,
    /// Ask for the paths of a list, one a line, in turn.
    ///
    /// A line is a path, or a URL of the same server; lines that begin with `#` and empty ones are left out.
    /// With --zipf each request draws one; the first line is asked for most. `-` is standard input.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    url_list: Option<PathBuf>,
    /// Each request draws its document: the i-th of them with a weight of 1/i^ALPHA.
    ///
    /// 0 draws all alike; 0.6 to 1 is usual for the web. Needs --documents or --url-list.
    #[arg(long, allow_negative_numbers = true, value_name = "ALPHA", value_parser = within(0.0, 100.0), hide_short_help = true)]
    zipf: Option<f64>,
    /// Number of documents that `{document}` counts; without --zipf they are asked for in turn.
    ///
    /// Without this option no two requests ask for the same document. With --url-list: only its first N
    /// lines.
    #[arg(long, value_name = "N", hide_short_help = true)]
    documents: Option<NonZeroU32>,
    /// Each request draws from the documents of a log, as often as it has them.
    ///
    /// People ask for the log's own paths, or, if the URL has a `{document}`, for the numbers in the order in
    /// which the log first names them. `-` is standard input.
    #[arg(long, value_name = "LOG", conflicts_with_all = ["url_list", "zipf", "documents"], hide_short_help = true)]
    popularity: Option<PathBuf>,
    /// Size that replaces `{bytes}`: a number, or `pareto:SHAPE:SMALLEST[:LARGEST]`.
    ///
    /// A document has the same size whenever it is asked for; web documents have shapes from 1.1 to 1.5.
    #[arg(long, value_name = "SIZES", conflicts_with = "url_list", hide_short_help = true)]
    sizes: Option<Sizes>,
    /// Method of the requests [default: GET, with --body POST].
    #[arg(long, value_name = "METHOD", hide_short_help = true)]
    method: Option<Method>,
    /// A field to send; may be repeated.
    #[arg(long, value_name = "NAME: VALUE", value_parser = header)]
    header: Vec<(HeaderName, HeaderValue)>,
    /// Send the contents of a file.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    body: Option<PathBuf>,
}

impl AskingArgs {
    /// Parts of the requests other than their path.
    ///
    /// # Errors
    /// A body that cannot be read, fields that cannot be sent.
    pub(crate) fn request(&self, target: &LoadTarget, inputs: &mut Inputs) -> anyhow::Result<Prepared> {
        let body = match &self.body {
            Some(path) => Bytes::from(inputs.read(path, LOAD_BODY_BYTES).context("--body")?),
            None => Bytes::new(),
        };
        let usual = if self.body.is_some() { Method::POST } else { Method::GET };
        let method = self.method.clone().unwrap_or(usual);
        Ok(Prepared::new(target, method, &self.header, body)?)
    }

    /// Popularity and paths of the documents; those of `replayed` if there is one. Sizes are drawn from
    /// `seed`.
    ///
    /// # Errors
    /// Files that cannot be read, paths that are none, options that do not go together.
    pub(crate) fn documents(
        &self,
        target: &LoadTarget,
        replayed: Option<&Recording>,
        recorded: &RecordedArgs,
        seed: u64,
        inputs: &mut Inputs,
    ) -> anyhow::Result<(Popularity, Paths)> {
        let path = self.path.as_deref().unwrap_or(&target.path);
        ensure!(list::is_path(path), "--path {path:?}: expected /PATH[?QUERY] without spaces or #FRAGMENT");
        if let Some(recording) = replayed {
            ensure!(
                path == "/",
                "--replay asks for its log's own paths: give a URL without a path, not {path}"
            );
            return Ok((Popularity::Recorded(recording.documents().clone()), paths_of(recording)));
        }
        if let Some(file) = &self.url_list {
            let paths = list::read(target, file, inputs)?;
            return self.listed(paths, file);
        }
        let template = Template::new(path, self.sizes, seed)?;
        let is_filled_in = path.contains('{');
        if let Some(log) = &self.popularity {
            let recording = recorded.read(log, inputs)?;
            let popularity = Popularity::counted(&recording.popularity_counts())?;
            ensure!(is_filled_in || path == "/", needs_place("--popularity", path));
            let paths = if is_filled_in { Paths::Template(template) } else { paths_of(&recording) };
            return Ok((popularity, paths));
        }
        for (option, is_given) in [("--zipf", self.zipf.is_some()), ("--documents", self.documents.is_some())]
        {
            ensure!(is_filled_in || !is_given, needs_place(option, path));
        }
        let popularity = match (self.zipf, self.documents) {
            (Some(alpha), Some(count)) => Popularity::zipf(alpha, count.get())?,
            (Some(_), None) => anyhow::bail!("--zipf needs --documents N or --url-list FILE"),
            (None, Some(count)) => Popularity::InOrder { count },
            (None, None) => Popularity::EachNew,
        };
        Ok((popularity, Paths::Template(template)))
    }

    fn listed(&self, mut paths: Vec<Box<str>>, file: &Path) -> anyhow::Result<(Popularity, Paths)> {
        if let Some(count) = self.documents {
            let (name, lines) = (inputs::name(file), paths.len());
            ensure!(count.get() as usize <= lines, "--documents {count}: {name} has {lines} paths");
            paths.truncate(count.get() as usize);
        }
        // A list has at least one path and fewer than 2³².
        let count =
            u32::try_from(paths.len()).ok().and_then(NonZeroU32::new).context("the list is too long")?;
        let popularity = match self.zipf {
            Some(alpha) => Popularity::zipf(alpha, count.get())?,
            None => Popularity::InOrder { count },
        };
        Ok((popularity, Paths::Table(paths.into())))
    }
}

fn paths_of(recording: &Recording) -> Paths {
    Paths::Table(recording.document_table().map(|document| Box::from(document.path)).collect())
}

fn needs_place(option: &str, path: &str) -> String {
    format!(
        "{option} numbers documents, but the path {path} has no {{document}} or {{bytes}} to distinguish them"
    )
}

#[cfg(test)]
mod tests {
    use crate::command::class::tests::class;
    use crate::{ClassPlan, Paths};
    use flashweir_workload::documents::Popularity;
    use std::io::Write;
    use std::num::NonZeroU32;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    fn at(path: &str, options: &str) -> Result<ClassPlan, String> {
        class(&format!("http://127.0.0.1:8080{path}"), &format!("--rate 5 {options}")).map(|class| class.plan)
    }

    fn table(plan: &ClassPlan) -> Vec<&str> {
        match &plan.paths {
            Paths::Table(paths) => paths.iter().map(|path| &**path).collect(),
            Paths::Template(_) => panic!("a template"),
        }
    }

    #[test]
    fn documents_are_new_in_turn_or_drawn() {
        assert_eq!(at("/a", "").unwrap().popularity, Popularity::EachNew);
        assert_eq!(at("/{document}", "").unwrap().popularity, Popularity::EachNew);
        let count = NonZeroU32::new(7).unwrap();
        let in_turn = at("/{document}", "--documents 7").unwrap();
        assert_eq!(in_turn.popularity, Popularity::InOrder { count });
        let drawn =
            at("/bytes/{bytes}?d={document}", "--documents 7 --zipf 0.8 --sizes pareto:1.3:1170").unwrap();
        assert_eq!(drawn.popularity, Popularity::zipf(0.8, 7).unwrap());
        assert!(matches!(drawn.paths, Paths::Template(_)));
        assert!(at("/ignored", "--path /{document} --documents 7").is_ok());
    }

    #[test]
    fn a_list_holds_paths_and_urls_of_the_same_server() {
        let list = file("# shop\n/a\n\nhttp://127.0.0.1:8080/b?c=d\r\n/e\n");
        let option = format!("--url-list {}", list.path().display());
        let plan = at("/", &option).unwrap();
        assert_eq!(table(&plan), ["/a", "/b?c=d", "/e"]);
        assert_eq!(plan.popularity, Popularity::InOrder { count: NonZeroU32::new(3).unwrap() });
        let plan = at("/", &format!("{option} --zipf 1 --documents 2")).unwrap();
        assert_eq!(table(&plan), ["/a", "/b?c=d"]);
        assert_eq!(plan.popularity, Popularity::zipf(1.0, 2).unwrap());
    }

    #[test]
    fn a_logs_documents_are_drawn_as_often_as_it_has_them() {
        let line =
            |path: &str| format!("h - - [17/May/2015:10:05:03 +0000] \"GET {path} HTTP/1.1\" 200 17\n");
        let log = file(&[line("/a"), line("/b"), line("/a")].concat());
        let option = format!("--popularity {}", log.path().display());
        let plan = at("/", &option).unwrap();
        assert_eq!(table(&plan), ["/a", "/b"]);
        assert_eq!(plan.popularity, Popularity::counted(&[2, 1]).unwrap());
        assert!(matches!(at("/{document}", &option).unwrap().paths, Paths::Template(_)));
        assert!(at("/shop", &option).unwrap_err().contains("no {document}"));
    }

    #[test]
    fn what_makes_no_request_is_refused_by_name() {
        let check = |path: &str, options: &str, wanted: &str| {
            let message = at(path, options).unwrap_err();
            assert!(message.contains(wanted), "{options}: {message:?} lacks {wanted:?}");
        };
        check("/{document}", "--zipf 0.8", "--zipf needs --documents");
        check("/{document}", "--zipf -1 --documents 5", "--zipf");
        check("/a", "--documents 5", "no {document}");
        check("/a", "--sizes 5", "no {bytes}");
        check("/{bytes}", "", "needs sizes");
        check("/{bytes}", "--sizes pareto:0:5", "is not a size");
        check("/{page}", "", "{page}");
        for path in ["b", "/a#b", "/a<b", "http://127.0.0.1:8080/"] {
            check("/", &format!("--path {path}"), "--path");
        }
        check("/", "--url-list not-there", "not-there cannot be opened");
        check("/", "--body not-there", "not-there cannot be opened");
        check("/", "--method CONNECT", "CONNECT");
        let empty = file("# nothing\n\n");
        check("/", &format!("--url-list {}", empty.path().display()), "holds no paths");
        let list = |text| {
            let list = file(text);
            at("/", &format!("--url-list {}", list.path().display())).unwrap_err()
        };
        assert!(list("/a\nb\n").contains("line 2: \"b\": expected"));
        assert!(list("/a\n/b c\n").contains("line 2: \"/b c\": expected"));
        assert!(list("/a#b\n").contains("line 1: \"/a#b\": expected"));
        assert!(list("/a\n\nhttp://127.0.0.1:81/\n").contains("line 3: http://127.0.0.1:81/ is not on"));
        assert!(list("https://127.0.0.1:8080/\n").contains("line 1: https://127.0.0.1:8080/ is not on"));
        let short = file("/a\n");
        check("/", &format!("--url-list {} --documents 2", short.path().display()), "has 1 paths");
    }
}
