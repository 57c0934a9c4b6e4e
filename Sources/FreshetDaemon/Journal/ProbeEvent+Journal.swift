import FreshetPipelines
import Logging

extension FlapLog {
    /// Logs the result of a network probe.
    func log(_ event: ProbeEvent) {
        switch event {
        case .refused(let probe, let sentence):
            log(.unproven, about: probe.text, [.probe: .string(probe.text), .error: .string(sentence)])
        case .proven(let probe, let duration):
            log(.proven, about: probe.text, [.probe: .string(probe.text), .duration: .string(duration.rounded)])
        }
    }
}
