//! Self-contained HTML reports with SVG plots.
