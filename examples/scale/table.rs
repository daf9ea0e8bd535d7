//! Figures of a run, and the table of several.

use std::fmt;
use std::str::FromStr;

use crate::Failure;

/// What a run has measured, by name, in the order of its measuring.
#[derive(Debug, Default)]
pub(crate) struct Figures(Vec<(String, f64)>);

impl Figures {
    pub(crate) fn put(&mut self, name: impl Into<String>, value: f64) {
        self.0.push((name.into(), value));
    }

    fn get(&self, name: &str) -> Option<f64> {
        let mut found = self.0.iter().filter(|(of, _)| of == name);
        found.next().map(|(_, value)| *value)
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.0 {
            writeln!(f, "{name}\t{value}")?;
        }
        Ok(())
    }
}

impl FromStr for Figures {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        let mut figures = Self::default();
        for (name, value) in text.lines().filter_map(|line| line.split_once('\t')) {
            figures.put(name, value.parse()?);
        }
        Ok(figures)
    }
}

/// Sizes with their figures; written as Markdown, one figure a line, with the exponent of its growth.
#[derive(Debug, Default)]
pub(crate) struct Table(Vec<(usize, Figures)>);

impl Table {
    pub(crate) fn add(&mut self, size: usize, figures: Figures) {
        self.0.push((size, figures));
    }

    /// All names, in the order of the last run, which has the most to tell.
    fn names(&self) -> Vec<&str> {
        let last = self.0.last();
        last.map_or_else(Vec::new, |(_, figures)| {
            figures.0.iter().map(|(name, _)| name.as_str()).collect()
        })
    }

    /// The slope of a straight line through the logarithms; none where a figure is 0 or missing.
    fn exponent(&self, name: &str) -> Option<f64> {
        let points: Option<Vec<(f64, f64)>> = self
            .0
            .iter()
            .map(|(size, figures)| {
                let value = figures.get(name).filter(|value| *value > 0.0)?;
                Some(((*size as f64).ln(), value.ln()))
            })
            .collect();
        let points = points.filter(|points| points.len() > 1)?;
        let count = points.len() as f64;
        let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
        let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
        let (mut above, mut below) = (0.0, 0.0);
        for (x, y) in points {
            above += (x - mean_x) * (y - mean_y);
            below += (x - mean_x) * (x - mean_x);
        }
        (below > 0.0).then(|| above / below)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "| n |")?;
        for (size, _) in &self.0 {
            write!(f, " {size} |")?;
        }
        writeln!(f, " exponent |")?;
        writeln!(f, "|---|{}---|", "---:|".repeat(self.0.len()))?;
        for name in self.names() {
            write!(f, "| {name} |")?;
            for (_, figures) in &self.0 {
                match figures.get(name) {
                    Some(value) => write!(f, " {} |", Short(value))?,
                    None => write!(f, " |")?,
                }
            }
            match self.exponent(name) {
                Some(exponent) => writeln!(f, " {exponent:.2} |")?,
                None => writeln!(f, " |")?,
            }
        }
        Ok(())
    }
}

/// Three digits that count.
struct Short(f64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.0;
        match value.abs() {
            0.0 => write!(f, "0"),
            size if size >= 100.0 => write!(f, "{value:.0}"),
            size if size >= 10.0 => write!(f, "{value:.1}"),
            size if size >= 1.0 => write!(f, "{value:.2}"),
            _ => write!(f, "{value:.3}"),
        }
    }
}
