import FreshetControl
import FreshetRender

/// The colour of a pipeline's state in pictures, as in tables.
enum StateStyle {
    static func style(of pipeline: PipelineStatus) -> Palette.Style {
        switch pipeline.state {
        case _ where pipeline.freshness == .expired: .bad
        case .loaded: .good
        case .failed: .bad
        case .waiting, .loading: .busy
        case .idle, .held, .unknown: .plain
        }
    }

    static func role(_ style: Palette.Style) -> SVGWriter.Role {
        switch style {
        case .good: .good
        case .busy: .busy
        case .bad: .bad
        case .plain, .faint, .heading: .plain
        }
    }
}
