import FreshetCache
import FreshetControl
import FreshetFleet
import FreshetModel
import FreshetPipelines
import FreshetSystemd
import Logging

/// The messages about the fleet.
enum FleetLog {
    static func log(_ event: FleetClient.Event, to log: LogLimiter) {
        switch event {
        case .connected(let server): log.log(.fleetConnected, [.detail: .string(server)])
        case .disconnected(let reason): log.log(.fleetLost, [.error: .string(reason)])
        case .rejected(let pipeline, let rejection):
            log.log(.fleetRejected, [.pipeline: .string(pipeline), .error: .string(rejection.description)])
        case .settled: break
        case .rolledOut(let record):
            log.log(
                .fleetRollOut,
                [
                    .pipeline: .string(record.pipeline), .number: .stringConvertible(record.number),
                    .detail: .string(sentence(record)),
                ])
        case .failed(let pipeline, let error):
            log.log(.fleetFailed, [.pipeline: .string(pipeline), .error: .string(error.description)])
        }
    }

    /// The state of a roll-out, as the end of a sentence.
    private static func sentence(_ record: FleetRecord) -> String {
        guard let rollOut = record.rollOut else { return "reaches the whole fleet" }
        let share = Double(rollOut.share) / 10_000
        return rollOut.isHalted
            ? "is halted at \(share) %; see 'freshetctl fleet status \(record.pipeline)'"
            : "reaches \(share) % of the fleet"
    }

    /// Why a run gets no content, as a sentence.
    ///
    /// - Parameter reason: why there is no connection; nil: there is one.
    static func sentence(_ obstacle: FleetObstacle, because reason: String?) -> String {
        switch obstacle {
        case .engineAway(let instant):
            let next =
                instant.map { "the origin is requested in \(max(.zero, $0 - .now).rounded)" }
                ?? "the origin is not requested (fleet.fallback: none)"
            return "the fleet does not answer (\(reason ?? "its buckets accept no writes")); \(next)"
        case .paused(let pause, let machine):
            return
                "\(machine) could not fetch it for the fleet: \(shown(pause.reason)); the fleet tries again after"
                + " \(pause.duration.rounded)"
        case .noFetcher(let last):
            guard let last else { return "no machine of the fleet has published it yet" }
            return "no machine of the fleet has checked it for \(last.duration(to: .now).rounded)"
        }
    }

    /// Text of another machine, short and on one line.
    static func shown(_ text: String) -> String { PlainText.escaping(String(text.prefix(200))) }
}
