import Logging

/// The kinds of messages that the daemon logs, with their text and level. The raw value is the message identifier
/// (`MESSAGE_ID`, systemd.journal-fields(7)) and never changes.
///
/// `journalctl MESSAGE_ID=…` finds the messages of a kind, `journalctl -x` explains them from
/// `systemd/freshet.catalog`, and `docs/journal.md` lists them. Tests compare both documents with this table.
enum JournalMessage: String, CaseIterable {
    // The daemon's life.
    case ready = "ca5cf8103cb9486cb2151383aeadd847"
    case stopping = "2f145c47cc92434b9359d88f8a193d18"
    case terminalClosed = "5b0e9bae9dd242c2bb126f1bca22af68"
    case cannotStart = "8854e41883c046d083800c9e6a31b3bb"
    case controlFailed = "6956fd2e2d6442f38adff3aa9ef0b243"
    case noManager = "3e588b2a143f4b9784ca69529bd2013c"
    case socketRepaired = "846bd026ddca422291b230dbab6a3ef7"
    case socketLost = "d6774d23db4748968160caff2d2e4901"
    case socketUnwatched = "513dff410ac448e0b253246c32294bc5"
    // Runs.
    case changed = "66f71c85b7f24bbaaa0c0a4d5d7ec04a"
    case unchanged = "533d72ca7a914d4f9b91600b7869027c"
    case failed = "257972dd68734f17ae756b6dc5ace42b"
    case truncated = "e8bbb4b6729e4721b5561f27718ccfc3"
    case branchesFailed = "65eb441326b94b45a6a73beca22a34fe"
    case loadMoreFailed = "441e61a3b08c4f2089c614658befcc63"
    case recovered = "f82d38fe28324e70bfd953fbd9ec25b2"
    case expired = "7b80ec59da2045af8f7cbcd11dd81c4d"
    case expiredNoMore = "95cc2fdd1cce491b8f0b566fd3d5fd70"
    case contentExpired = "8c6a3f7d0e5b4d0c9d2a1f64b7e85c31"
    case contentExpiredNoMore = "5f1e9b2c74a84c6e8b30d7a6c1f2e984"
    case withdrawn = "e19f5671238f4225a47e88c418c3c611"
    case returned = "3ac9bd8bfad54e40baf1b7e7378d46e5"
    case summary = "80e0832f01dd414d8552afb344a7acc2"
    case notRun = "fa09bd3c13054552bed0016ce2fd6cb3"
    // Hooks.
    case hookDone = "f4e8ac8d38dc474dbb733b11467042ab"
    case hookFailed = "1205775a1007429ebb1d1e85186edc09"
    case hookOutput = "7c4713f384504645a00cdec44dd21607"
    case sharedHookDone = "8cf197e0305b42529842d32542a5ae33"
    case sharedHookFailed = "592a888df74b4a29b0129ec3a8e5d8b4"
    // Checks.
    case checkOutput = "6dfb3d34acbe466db3518c162f28112a"
    case signed = "3fb7221534f841018fa1770902731881"
    // Signals.
    case fired = "f1cda6ad33d949f785de07c4dde6752f"
    case firedMore = "d6c48a9dd9f14ab08d3bb2328c8f9b3c"
    case firedByRequest = "c3db1bd4e7c143a6833f263c8d2edf21"
    // Decisions that lead to runs, for debugging.
    case signalReceived = "ca0309a93c6d42f2a5ba75aa201e4ae9"
    case freshEnough = "68169e9339f84055b7d54dc4b2e4c343"
    case signalsIgnored = "d0a51f6c2b8e4e6f9a3c7714be905d28"
    case waiting = "dc89e0303b544fc889aa97e6daadf9e5"
    case waited = "466ad4d5d91b445883d69118cbc7541f"
    case runStarted = "770a8eb3cb58429fb1ef2435bb679081"
    case runCutShort = "43793088594c48dca79e5c842d41044d"
    case networkSettling = "2494ec07255b40cda8a69bf5ae6d1c9a"
    case retryPlanned = "4bb2477b85234b24849d2b31f5dbb86a"
    // Parameters.
    case parametersSet = "71d6d1fa69ce43949be53fbad8fc37d6"
    case parametersDropped = "68990bce17a24b3997b9122c982a0f33"
    // Configuration.
    case reloaded = "369e7ef8dfd446099e6530e3fc46ab35"
    case reloadRefused = "ad7d0387f3ee4fdbb4f07230b67d6ff4"
    case configurationError = "5625a57da3734e1a9c2d0b10b6c16500"
    case invalidPipeline = "1c0e49dbdf174eb9a7fb4558f75abd3c"
    case invalidHook = "1ede8bce7fea4bacbc03ee3237d4595d"
    // The cache.
    case indexRebuilt = "b4d49681c1b6468580edcedaae88fbb6"
    case indexRepaired = "ac61d0ad189a406a94133629eda58804"
    case cacheRepaired = "c7176e0f419246289ab9c463273b2aef"
    case cacheUpdateFailed = "ab6bd2ed3512434ca37b15d55b5a9d3e"
    case notRestored = "411f046f763e4998a3d2cbc2572b1a6e"
    case copyLost = "6f77ffc2ddb34629bbd3a11f77023392"
    case rolledBack = "40c244f80bfb4e58b52b3146e5421c05"
    case accepted = "32f60c3c4c4a4ae0b33226d6328ece8d"
    case pinned = "8d0c8ebe17a64fa1aa59869e8200f7d7"
    case unpinned = "7653177bb97a491e971630c8d14c56ed"
    case held = "8202a67a813643e290a00a5323e72fa4"
    case released = "35f8f38c3b5b47aa80222cca51fd5554"
    case heldBack = "b76bdaffc2b44c0481c55e055683b0de"
    case removedForSpace = "d7ab479fa20c4858815d8ae142f4c2f1"
    case pruned = "7bfb4720a16145b7a2ce7e4401f96365"
    // The machine.
    case resumed = "38988b34e4ce4065b5ede383ced9bfa8"
    case clockStepped = "045ea345332c48c79b66127d5877f2d4"
    case logindMissing = "c7c2992a49e046c48206f99e66184b46"
    case logindFound = "5e9a98707d8b4905be62e52aaae3f972"
    case busNotReceived = "5b7e4ef8f1f4420082a92f22dba23d2e"
    case fileUnwatched = "3da078a3c13a48fcb71993e9b0bd541a"
    // The network.
    case network = "6400bcdb36024f2ebc67e8fc559dacd0"
    case networkUnknown = "8e849ad9278d4bf6927701832a94ab5a"
    case unproven = "01f1b346262941eea1639f2dd0e6f0e2"
    case proven = "79025b8d29fb478b9a8904bd8b725b47"
    // The fleet.
    case fleetConnected = "2c1d9a6e0b7f4b58a3f4c6d8e9017b25"
    case fleetLost = "9e4b7c30d15a4f6c8b2e7a90c4d3f618"
    case fleetUnusable = "b06f2d8e4a9c4e1790d5c3b7a8f1e264"
    case fleetContent = "47a9e0c5b8d24c31a6f7e2d90b1c5836"
    case fleetRejected = "d83c5f1a7e604b2994c0e6b8a1d7f352"
    case fleetRollOut = "b1f2a8c37d5e4f06a94c83e2d7160b59"
    case fleetFailed = "60b8e3d7c2f14a95b1d4f9a0e7c68213"
    // Helpers.
    case sandboxIncomplete = "e9b953088d0044d39cfb12a66af1d571"
    // The event loop.
    case slowJob = "3c9d0e5b7a164c2f8be1d94f60a7c258"
    // The journal itself.
    case more = "6127226a92d14ebc81ca7790c56542a8"
    case logLevel = "1f91b9eae7fb413f8baa6bd131a7b4fe"
    case lost = "072a0346d0ab46dcb74a864ab22abe21"

    /// The default level of the message.
    var level: Logger.Level {
        switch self {
        case .fired, .signalReceived, .freshEnough, .signalsIgnored, .waiting, .waited, .runStarted, .runCutShort,
            .networkSettling,
            .retryPlanned,
            .unchanged:
            .debug
        case .ready, .stopping, .terminalClosed, .changed, .recovered, .expiredNoMore, .contentExpiredNoMore, .returned,
            .summary, .reloaded,
            .network,
            .firedMore, .parametersSet, .noManager, .socketUnwatched, .resumed, .clockStepped, .logindFound,
            .fleetConnected, .fleetContent, .fleetRollOut, .proven, .hookDone, .hookOutput, .checkOutput, .signed,
            .sharedHookDone:
            .info
        case .firedByRequest, .cacheRepaired, .logLevel, .socketRepaired, .logindMissing, .busNotReceived, .unproven,
            .rolledBack, .accepted, .pinned, .unpinned, .held, .released, .heldBack, .removedForSpace, .pruned,
            .sandboxIncomplete, .slowJob:
            .notice
        case .failed, .truncated, .branchesFailed, .loadMoreFailed, .expired, .contentExpired, .withdrawn, .notRun,
            .parametersDropped, .indexRebuilt, .indexRepaired, .networkUnknown, .fileUnwatched, .more, .lost,
            .notRestored, .copyLost, .fleetLost, .fleetRejected, .fleetFailed,
            .hookFailed, .sharedHookFailed:
            .warning
        case .fleetUnusable, .reloadRefused, .configurationError, .invalidPipeline, .invalidHook, .cacheUpdateFailed,
            .socketLost:
            .error
        case .cannotStart, .controlFailed: .critical
        }
    }

    /// The constant text of the message. On output for people, the value of a field replaces `{field}`.
    var text: Logger.Message {
        switch self {
        case .ready: "ready"
        case .stopping: "stopped"
        case .terminalClosed: "the terminal was closed, stopping"
        case .cannotStart: "cannot start: {error}"
        case .controlFailed: "the control socket failed, stopping: {error}"
        case .noManager:
            "no service manager: readiness is not reported, and nothing restarts a daemon that ends or hangs"
        case .socketRepaired: "the control socket had been removed; it was created again"
        case .socketLost: "the control socket was removed and cannot be created again; restart the daemon: {error}"
        case .socketUnwatched: "cannot watch the control socket; its removal will not be noticed: {error}"
        case .changed: "changed"
        case .unchanged: "unchanged"
        case .failed: "failed, keeping the copy: {error}"
        case .truncated: "the copy is truncated: the source has more pages than pages.max allows"
        case .branchesFailed:
            "some branches failed, the others are published; 'freshetctl status {pipeline}' lists them: {error}"
        case .loadMoreFailed: "cannot load a further page, keeping the copy: {error}"
        case .recovered: "recovered"
        case .expired: "the copy is older than max-age; it stays published"
        case .expiredNoMore: "the copy is younger than max-age again"
        case .contentExpired: "the content is past the expiry time that it states; it stays published"
        case .contentExpiredNoMore: "the content is valid again"
        case .withdrawn: "the copy is older than max-age and was withdrawn: readers find no file"
        case .returned: "the withdrawn copy is published again"
        case .summary:
            "{signal} started {pipelines} pipelines: {changed} changed, {unchanged} unchanged, {failed} failed"
        case .notRun: "not run: the network is not reachable"
        case .fired: "{signal} fired"
        case .firedMore: "{signal} fired {count} more times"
        case .firedByRequest: "{signal} was fired by hand"
        case .hookDone: "the hook succeeded"
        case .hookFailed: "the hook failed; Freshet retries it: {error}"
        case .hookOutput: "hook output: {output}"
        case .sharedHookDone: "the hook {hook} succeeded; changed pipelines: {pipelines}"
        case .sharedHookFailed: "the hook {hook} failed; Freshet retries it: {error}"
        case .checkOutput: "check output: {output}"
        case .signed: "the publisher's signature is valid; its comment: {comment}"
        case .signalReceived: "received a signal"
        case .freshEnough: "the copy is fresh enough; nothing is fetched"
        case .signalsIgnored: "ignored signals, because a run is in progress"
        case .waiting: "waiting"
        case .waited: "stopped waiting"
        case .runStarted: "run started"
        case .runCutShort: "run ended early"
        case .networkSettling: "the network is not ready; trying again"
        case .retryPlanned: "retry planned"
        case .parametersSet: "parameters were set: {parameters}"
        case .parametersDropped:
            "stored values are no longer valid; these parameters have their defaults: {parameters}"
        case .reloaded: "configuration active"
        case .reloadRefused: "reload refused; the previous configuration stays active"
        case .configurationError: "configuration error: {error}"
        case .invalidPipeline: "not run, its configuration has an error: {error}"
        case .invalidHook: "the hook {hook} does not run, its configuration has an error: {error}"
        case .indexRebuilt:
            "the index {file} is damaged: {error}; it is now {moved-to}, and a new one was made from the files; lost: times of checks, validators, runs, history, budgets, parameters, holds, pins, pending hooks"
        case .indexRepaired:
            "damaged values in the index {file} were dropped or reset, published copies are not affected: {content}"
        case .cacheRepaired: "the cache was repaired"
        case .cacheUpdateFailed:
            "cannot update the cache; check the disk: {error}"
        case .notRestored: "the published file is missing and cannot be published again; Freshet tries again: {error}"
        case .copyLost: "readers find no file, because no intact content is kept; Freshet fetches it again"
        case .rolledBack: "rolled back to generation {generation}"
        case .accepted: "published rejected content as generation {generation}"
        case .pinned: "pinned at generation {generation}"
        case .unpinned: "no longer pinned"
        case .held: "held: the pipeline does not run until it is released ('freshetctl release {pipeline}')"
        case .released: "released: the pipeline runs again"
        case .heldBack: "the source has new content; the copy stays because it is pinned"
        case .removedForSpace: "removed older content because cache.max-total or cache.min-free was reached: {content}"
        case .pruned: "removed everything that was kept for a pipeline that is not configured"
        case .resumed: "the machine woke up"
        case .clockStepped: "the wall clock was set"
        case .logindMissing: "no logind; detecting sleep by the clocks only: {error}"
        case .logindFound: "logind is available"
        case .busNotReceived: "cannot receive a D-Bus signal: {error}"
        case .fileUnwatched: "cannot watch a file; some of its changes will not be noticed: {error}"
        case .network: "the network has changed"
        case .networkUnknown: "cannot determine whether the network is reachable; pipelines run as if it were"
        case .unproven: "pipelines wait: {error}"
        case .proven: "the network reaches {probe}"
        case .fleetConnected: "connected to the fleet"
        case .fleetLost: "the fleet cannot be used now, copies stay: {error}"
        case .fleetUnusable: "the fleet cannot be used until this is repaired: {error}"
        case .fleetContent: "takes number {number} of the fleet, fetched by {source}"
        case .fleetRejected: "rejected a record of the fleet, keeping the copy: {error}"
        case .fleetRollOut: "the roll-out of number {number} {detail}"
        case .fleetFailed: "an operation on the fleet's buckets failed: {error}"
        case .sandboxIncomplete: "helpers run without a part of their sandbox: {error}"
        case .slowJob: "{job} kept the daemon busy for {milliseconds} ms; if this happens often, report a bug"
        case .more: "{count} similar messages suppressed (shown at debug)"
        case .logLevel: "the log level is now {level}"
        case .lost: "{count} messages were lost: the journal accepted none for a while"
        }
    }
}

/// The fields of messages. In the journal, the field `pipeline` has the name `FRESHET_PIPELINE`.
enum JournalField: String, CaseIterable {
    case pipeline, run, causes, signal, count, outcome, generation, error, duration, next, repeated, failures
    case wait = "waiting-for"
    case freshFor = "fresh-for"
    case delay
    case version, pipelines, runs, changed, unchanged, failed, recovered, added, removed
    case caller = "requested-by"
    case errors, file, line, column
    case target, path, changes
    case repairs
    case movedTo = "moved-to"
    case message = "suppressed"
    case age
    case level, socket, slept, detail, match, probe
    case number, source, parameters
    case replaced
    case hook, names, output, check, comment
    case bytes, content
    case job, milliseconds, mirror
}

extension Logger {
    /// Logs a message with its identifier and its fields.
    ///
    /// - Parameters:
    ///   - text: a constant text that replaces the text of the message.
    ///   - level: a level that replaces the level of the message.
    ///   - fields: evaluated only if the message is logged.
    func log(
        _ message: JournalMessage, text: Logger.Message? = nil, level: Logger.Level? = nil,
        _ fields: @autoclosure () -> [JournalField: MetadataValue] = [:], file: String = #fileID,
        function: String = #function, line: UInt = #line
    ) {
        func metadata() -> Metadata {
            var metadata: Metadata = ["message-id": .string(message.rawValue)]
            for (field, value) in fields() { metadata[field.rawValue] = value }
            return metadata
        }
        log(
            level: level ?? message.level, text ?? message.text, metadata: metadata(), file: file, function: function,
            line: line)
    }
}
