import FreshetControl
import FreshetRender

/// The sentences below a marble diagram.
struct MarbleStory {
    let diagram: MarbleDiagram
    let times: Times

    /// Such as `flags: 14 signals, 2 runs`.
    var headline: String {
        let received = diagram.episodes.reduce(0) { $0 + $1.received }
        let runs = diagram.episodes.reduce(0) { $0 + $1.runs.count }
        return "\(diagram.name): \(Count.text(received, "signal")), \(Count.text(runs, "run"))"
    }

    /// A line for each signal: its letter, its time, and its cause. Consecutive signals that differ only in time are
    /// one line.
    func signals(_ episode: MarbleDiagram.Episode) -> [(label: String, text: String)] {
        var lines: [(label: String, text: String)] = []
        var rest = episode.marbles[...]
        while let first = rest.first {
            let same = rest.prefix {
                $0.source == first.source && $0.detail == first.detail && Self.isSame($0.outcome, first.outcome)
            }
            let group = same.count > 2 ? same : rest.prefix(1)
            rest = rest.dropFirst(group.count)
            let count = group.reduce(0) { $0 + $1.count }
            let last = group.last ?? first
            var text = times.timeOfDay(first.at)
            if count > 1 { text += " to \(times.timeOfDay(max(last.at, last.until)))" }
            text += " \(first.source)" + (count > 1 ? ", \(count) times" : "")
            if let detail = first.detail { text += ": \(detail)" }
            lines.append((group.count > 1 ? "\(first.label)-\(last.label)" : first.label, text))
        }
        return lines
    }

    /// The sentence for a run: its signals, its waits and its outcome.
    func run(_ place: Int, _ episode: MarbleDiagram.Episode) -> String {
        let run = episode.runs[place]
        let own = episode.marbles.filter { $0.outcome == .run(place) }
        let count = own.reduce(0) { $0 + $1.count }
        var text = "run \(run.number): "
        switch count {
        case 0: text += run.repeats.map { "repeats run \($0), which did not succeed" } ?? "cause unknown"
        case 1: text += "for \(own.map(\.label).joined())"
        default: text += "for \(labels(own)), \(count) signals as one"
        }
        if count > 0, let repeated = run.repeats { text += "; repeats run \(repeated), which did not succeed" }
        let waits = run.waits.map { wait in
            "waited \(TimeText.duration(wait.microseconds)) "
                + (wait.reason.map { "for \(PipelineView.waiting($0))" } ?? "while it was held")
        }
        if waits.isEmpty, let first = own.first, run.started - first.at < 50_000 {
            text += "; immediately"
        } else if !waits.isEmpty {
            text += "; " + waits.joined(separator: ", ")
        }
        return text + "; " + outcome(run)
    }

    private func labels(_ marbles: [MarbleDiagram.Marble]) -> String {
        guard marbles.count > 3 else { return marbles.map(\.label).joined(separator: ", ") }
        let all = MarbleDiagram.labels
        if let first = marbles.first, let last = marbles.last, let from = all.firstIndex(of: first.label),
            let to = all.firstIndex(of: last.label), to - from + 1 == marbles.count
        {
            return "\(first.label) to \(last.label)"
        }
        return marbles.map(\.label).joined(separator: ", ")
    }

    private func outcome(_ run: MarbleDiagram.Run) -> String {
        guard let ended = run.ended else { return "in progress" }
        let duration = " in \(TimeText.duration(ended - run.started))"
        switch run.outcome {
        case .changed?: return "changed" + (run.generation.map { ", generation \($0)," } ?? "") + duration
        case .unchanged?: return "unchanged" + duration
        case .failed?: return "failed" + duration + (run.failure.map { ": \($0)" } ?? "")
        case .superseded?: return "superseded" + (run.failure.map { ": \($0)" } ?? duration)
        case .cancelled?: return "cancelled" + (run.failure.map { ": \($0)" } ?? duration)
        case .unknown?, nil: return "ended"
        }
    }

    /// A sentence for each reason for which signals caused no run.
    func withoutRun(_ episode: MarbleDiagram.Episode) -> [String] {
        var groups: [(outcome: MarbleDiagram.SignalOutcome, marbles: [MarbleDiagram.Marble])] = []
        for marble in episode.marbles {
            if case .run = marble.outcome { continue }
            if let place = groups.firstIndex(where: { Self.isSame($0.outcome, marble.outcome) }) {
                groups[place].marbles.append(marble)
            } else {
                groups.append((marble.outcome, [marble]))
            }
        }
        return groups.map { group in
            let names = labels(group.marbles)
            switch group.outcome {
            case .run: return ""
            case .fresh(let run, let after):
                let span = diagram.freshForUSec.map { ", and is fresh for \(TimeText.setting($0))" } ?? ""
                return "\(names): no run; run \(run) had checked the copy \(TimeText.duration(after)) before\(span)"
            case .answered(let run): return "\(names): no separate run; run \(run) succeeded after it"
            case .pending: return "\(names): the run is still to come"
            case .held:
                let remedy = "'freshetctl release \(diagram.name)' lets it run"
                return "\(names): waiting, because \(diagram.name) is held; \(remedy)"
            case .refusedWhileHeld: return "\(names): refused, because \(diagram.name) was held"
            case .unknown: return "\(names): no known run"
            }
        }
    }

    private static func isSame(_ one: MarbleDiagram.SignalOutcome, _ other: MarbleDiagram.SignalOutcome) -> Bool {
        if case .fresh(let first, _) = one, case .fresh(let second, _) = other { return first == second }
        return one == other
    }

    /// The time of an episode, and the length of a frame.
    func title(_ episode: MarbleDiagram.Episode, _ frames: MarbleFrames) -> String {
        let day = times.absolute(episode.from).split(separator: " ").prefix(2).joined(separator: " ")
        return "\(day) \(times.timeOfDay(episode.from)), a frame is \(TimeText.duration(frames.length))"
    }

    /// The meaning of the characters.
    static let legend =
        "- a frame of time   a a signal   {ab} both, as one   (ab) in one frame   ^ a run begins   "
        + "7| a new copy, the end   | nothing new   x failed   ! cut short"
}

/// Marble diagrams on a terminal, in the notation of FreshetTestKit.
struct MarblesText {
    let diagram: MarbleDiagram
    let times: Times
    let palette: Palette
    var legend = true

    func lines(columns: Int) -> [String] {
        let glyphs = Glyphs(palette.charset)
        let story = MarbleStory(diagram: diagram, times: times)
        var lines = [palette.paint(glyphs.text(story.headline), .heading)]
        if !diagram.terms.isEmpty {
            lines.append(palette.paint(glyphs.text(diagram.terms.joined(separator: ", ")), .faint))
        }
        for episode in diagram.episodes {
            lines.append("")
            lines += self.lines(episode, story, glyphs, columns)
        }
        if diagram.episodes.isEmpty { lines.append("No signals in this time.") }
        if legend, !diagram.episodes.isEmpty {
            lines.append("")
            lines += Self.wrapped(MarbleStory.legend, "   ", columns).map { palette.paint($0, .faint) }
        }
        if legend { lines += diagram.notes.flatMap { WrappedText.lines(glyphs.text($0), columns: columns) } }
        return lines
    }

    private func lines(
        _ episode: MarbleDiagram.Episode, _ story: MarbleStory, _ glyphs: Glyphs, _ columns: Int
    ) -> [String] {
        let names = episode.marbles.map(\.source) + ["gathered"] + episode.runs.map { "run \($0.number)" }
        let widest = names.map { DisplayText.width(of: glyphs.text($0)) }.max() ?? 0
        let label = min(widest, max(10, columns * 3 / 10))
        let frames = MarbleFrames.fitting(episode, most: columns - label - 1) {
            $0.lines(episode).first?.count ?? 0
        }
        var lines = [palette.paint(glyphs.text(story.title(episode, frames)), .faint)]
        for (lane, text) in zip(frames.lanes, frames.lines(episode)) {
            let name = glyphs.text(lane.name, columns: label)
            let padding = String(repeating: " ", count: max(0, label - DisplayText.width(of: name)) + 1)
            lines.append(name + padding + palette.paint(text, style(lane, episode)))
        }
        if episode.runs.count > MarbleFrames.mostRuns {
            lines.append("\(Count.text(episode.runs.count - MarbleFrames.mostRuns, "further run")) not drawn")
        }
        lines.append("")
        let signals = story.signals(episode)
        let widestLetters = signals.map(\.label.count).max() ?? 1
        for (label, text) in signals {
            let padding = String(repeating: " ", count: widestLetters - label.count)
            lines.append(glyphs.text("  \(label)\(padding)  \(text)", columns: columns))
        }
        for place in episode.runs.indices {
            let style = Self.style(episode.runs[place].outcome)
            lines += WrappedText.lines(glyphs.text(story.run(place, episode)), columns: columns - 2)
                .map { palette.paint("  " + $0, style) }
        }
        for sentence in story.withoutRun(episode) {
            lines += WrappedText.lines(glyphs.text(sentence), columns: columns - 2).map { "  " + $0 }
        }
        return lines
    }

    private func style(_ lane: MarbleFrames.Lane, _ episode: MarbleDiagram.Episode) -> Palette.Style {
        switch lane.kind {
        case .source: .plain
        case .gathered: .busy
        case .run(let place): Self.style(episode.runs[place].outcome)
        }
    }

    private static func style(_ outcome: RunOutcome?) -> Palette.Style {
        switch outcome {
        case .changed?: .good
        case .failed?: .bad
        case .superseded?, .cancelled?: .busy
        case .unchanged?, .unknown?, nil: .plain
        }
    }

    /// Breaks a text only at separators.
    static func wrapped(_ text: String, _ separator: String, _ columns: Int) -> [String] {
        var lines: [String] = []
        var rest = text[...]
        var parts: [Substring] = []
        while let range = rest.firstRange(of: separator) {
            parts.append(rest[..<range.lowerBound])
            rest = rest[range.upperBound...]
        }
        parts.append(rest)
        for part in parts {
            if let last = lines.last, last.count + separator.count + part.count <= columns {
                lines[lines.count - 1] = last + separator + part
            } else {
                lines.append(String(part))
            }
        }
        return lines
    }
}
