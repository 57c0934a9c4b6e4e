import FreshetControl
import FreshetRender

/// An event of `monitor`, in one line.
enum EventView {
    static func text(_ event: ControlEvent, _ times: Times, _ palette: Palette) -> String {
        let pipeline = event.pipeline.map { "\($0): " } ?? ""
        let text = DisplayText.harmless(pipeline + what(event, times))
        return "\(palette.paint(times.timeOfDay(event.at), .faint)) \(palette.paint(text, style(event)))"
    }

    /// An event of `signals --follow`, which prints only signals and facts.
    static func signal(_ event: ControlEvent, _ times: Times, _ palette: Palette) -> String {
        let source = event.source ?? event.signal ?? ""
        let text: String
        switch event.kind {
        case .signal:
            let number = event.number.map { " #\($0)" } ?? ""
            let pipeline = event.pipeline.map { " for \($0)" } ?? ""
            text = "\(source)\(number)\(pipeline)" + (event.detail.map { ": \($0)" } ?? "")
        case .fact: text = "\(source) is now: \(event.detail ?? "")"
        default: return Self.text(event, times, palette)
        }
        let style: Palette.Style = event.kind == .fact ? .faint : .plain
        return "\(palette.paint(times.timeOfDay(event.at), .faint)) "
            + palette.paint(DisplayText.harmless(text), style)
    }

    private static func what(_ event: ControlEvent, _ times: Times) -> String {
        let detail = event.detail.map { ": \($0)" } ?? ""
        switch event.kind {
        case .signal:
            let number = event.number.map { " #\($0)" } ?? ""
            return "signal \(event.source ?? event.signal ?? "")\(number)\(detail)"
        case .fact: return "\(event.source ?? event.signal ?? "") is now\(detail)"
        case .runStarted:
            let causes = PipelineView.causes(event.run?.causes ?? [], times).map { ", because of \($0)" } ?? ""
            return "run \(event.run?.number ?? 0) started\(causes)"
        case .runEnded: return ended(event)
        case .state:
            let reason = event.waitingFor.map { " for \(PipelineView.waiting($0))" } ?? ""
            let until = event.waitingUntil.map { ", until \(times.timeOfDay($0))" } ?? ""
            return "\(event.state?.rawValue ?? "")\(reason)\(until)\(detail)"
        case .reloaded: return "configuration reloaded\(detail)"
        case .unknown: return "an event that this freshetctl does not know\(detail)"
        case .skipped: return "\(event.number ?? 0) events skipped: this client read too slowly"
        }
    }

    private static func ended(_ event: ControlEvent) -> String {
        guard let run = event.run else { return "run ended" }
        let outcome = run.outcome?.rawValue ?? "ended"
        let duration = run.durationUSec.map { " in \(TimeText.duration($0))" } ?? ""
        let generation = event.generation.map { ", generation \($0.number), \(SizeText.bytes($0.size))" } ?? ""
        let failure = run.failure.map { ": \($0)" } ?? ""
        return "run \(run.number) \(outcome)\(generation)\(duration)\(failure)"
    }

    private static func style(_ event: ControlEvent) -> Palette.Style {
        switch event.kind {
        case .runEnded where event.run?.outcome == .failed, .skipped: .bad
        case .runEnded where event.run?.outcome == .changed: .good
        default: .plain
        }
    }
}
