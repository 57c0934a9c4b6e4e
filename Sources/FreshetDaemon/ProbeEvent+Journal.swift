import FreshetPipelines
import Logging

extension Logger {
    /// Says how a probe stands.
    func say(_ news: ProbeEvent) {
        switch news {
        case .refused(let probe, let sentence):
            say(.unproven, [.probe: .string(probe.text), .error: .string(sentence)])
        case .proven(let probe, let duration):
            say(.proven, [.probe: .string(probe.text), .duration: .string(duration.rounded)])
        }
    }
}
