import ArgumentParser
import FreshetControl

/// States of pipelines on the command line, separated by commas.
struct StateNames: ExpressibleByArgument, Hashable, Sendable {
    var states: [PipelineState]

    static let known = PipelineState.allCases.filter { $0 != .unknown }

    init?(argument: String) {
        let names = argument.split(separator: ",", omittingEmptySubsequences: false)
        var states: [PipelineState] = []
        for name in names {
            guard let state = Self.known.first(where: { $0.rawValue == name }) else { return nil }
            states.append(state)
        }
        self.states = states
    }

    static var allValueStrings: [String] { known.map(\.rawValue) }
}
