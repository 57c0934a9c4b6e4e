import FreshetControl

/// The status requests of a verb that waits for runs, on a connection of their own.
///
/// The verb's own connection reports a daemon that does not answer. A status request must not delay that, so it waits
/// only ``Session/besideLimit``. After a request without an answer there is none for a while.
final class ProgressQuery {
    /// How long no request is made after a request without an answer: longer than the verb's own connection waits.
    private static let pause = ControlClient.longestSilence

    private let names: [String]?
    private let connect: () throws(ControlClient.Failure) -> ControlClient
    private var client: ControlClient?
    private var isOver = false
    private var pausedUntil: ContinuousClock.Instant?

    /// - Parameters:
    ///   - names: the pipelines; nil for all.
    ///   - connect: opens the connection, at the first request.
    init(_ names: [String]?, connect: @escaping () throws(ControlClient.Failure) -> ControlClient) {
        self.names = names
        self.connect = connect
    }

    /// The status of the pipelines; nil: the daemon does not answer now, or has ended.
    func pipelines() -> [PipelineStatus]? {
        if let pausedUntil, pausedUntil > .now { return nil }
        guard !isOver else { return nil }
        do throws(ControlClient.Failure) {
            let connected = if let client { client } else { try connect() }
            client = connected
            return try connected.pipelines(names)
        } catch .notAnswering {
            (client, pausedUntil) = (nil, .now + Self.pause)
        } catch {
            // The call that waits for the results reports the error.
            (client, isOver) = (nil, true)
        }
        return nil
    }
}
