//! The terminal: one picture, or one after the other until a key ends it.

use std::io;
use std::thread;
use std::time::Instant;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use sheaves::export::{Exporter, Snapshot};

use crate::args::{Args, Sort};
use crate::demo::Demo;
use crate::model::Model;
use crate::view;

/// Looks.
fn look(args: &Args) -> io::Result<Snapshot> {
    match &args.file {
        Some(path) => Snapshot::read(path),
        None => Ok(Snapshot::take()),
    }
}

pub(crate) fn run(args: &Args) -> io::Result<()> {
    let _demo = args.file.is_none().then(Demo::start);
    let export = args.export.as_ref();
    let _exporter = export
        .map(|path| Exporter::start(path, args.interval()))
        .transpose()?;
    let mut model = Model::default();
    model.update(look(args)?);
    if args.once {
        // Rates need a second look.
        thread::sleep(args.interval());
        model.update(look(args)?);
        return print(args, &mut model);
    }
    let mut terminal = ratatui::try_init()?;
    let result = watch(args, &mut model, &mut terminal);
    ratatui::restore();
    result
}

/// Prints the picture as text.
fn print(args: &Args, model: &mut Model) -> io::Result<()> {
    model.sort(args.sort, false);
    let mut terminal = Terminal::new(TestBackend::new(args.width, args.height))?;
    terminal.draw(|frame| view::draw(frame, model, args.sort, false))?;
    print!("{}", text(terminal.backend().buffer()));
    Ok(())
}

/// The lines of a picture, without blanks at their ends and empty lines at the bottom.
fn text(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area.width).max(1);
    let mut text = String::new();
    for line in buffer.content.chunks(width) {
        let line: String = line.iter().map(|cell| cell.symbol()).collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    let end = text.trim_end_matches('\n').len();
    text.truncate(end);
    text.push('\n');
    text
}

/// How the list is shown.
struct State {
    sort: Sort,
    reverse: bool,
    paused: bool,
}

impl State {
    /// What a key does; `false` if it ends the view.
    fn key(&mut self, code: KeyCode) -> bool {
        match code {
            KeyCode::Char('q') | KeyCode::Esc => return false,
            KeyCode::Char('n') => self.sort = Sort::Name,
            KeyCode::Char('b') => self.sort = Sort::Bytes,
            KeyCode::Char('a') => self.sort = Sort::Activity,
            KeyCode::Char('f') => self.sort = Sort::Fast,
            KeyCode::Char('u') => self.sort = Sort::Unused,
            KeyCode::Char('r') => self.reverse = !self.reverse,
            KeyCode::Char(' ') => self.paused = !self.paused,
            _ => {}
        }
        true
    }
}

fn watch(
    args: &Args,
    model: &mut Model,
    terminal: &mut ratatui::DefaultTerminal,
) -> io::Result<()> {
    let mut state = State {
        sort: args.sort,
        reverse: false,
        paused: false,
    };
    let mut next = Instant::now();
    loop {
        if !state.paused && Instant::now() >= next {
            // A file that is gone, or is just being written for the first time, shows what it had.
            if let Ok(snapshot) = look(args) {
                model.update(snapshot);
            }
            next = Instant::now() + args.interval();
        }
        model.sort(state.sort, state.reverse);
        terminal.draw(|frame| view::draw(frame, model, state.sort, state.paused))?;
        let wait = if state.paused {
            args.interval()
        } else {
            next.saturating_duration_since(Instant::now())
        };
        if !event::poll(wait)? {
            continue;
        }
        if let Event::Key(key) = event::read()? {
            let interrupt =
                key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c');
            if key.kind == KeyEventKind::Press && (interrupt || !state.key(key.code)) {
                return Ok(());
            }
        }
    }
}
