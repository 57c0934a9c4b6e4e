import FreshetConfiguration
import FreshetControl
import FreshetModel
import FreshetPipelines
package import FreshetReplay
import FreshetSystemSignals
import FreshetSystemd
import Glibc

/// A replay on the command line.
package struct ReplayRequest: Sendable {
    private let file: String
    private let content: Result<[UInt8], RecordingError>
    package var json = false

    /// Reads the recording with the rights of the user who started the process. Blocks.
    ///
    /// - Parameter file: a path; `-` is standard input.
    package init(file: String) {
        self.file = file == "-" ? "standard input" : file
        content = Self.read(file, name: self.file)
    }

    private static func read(_ path: String, name: String) -> Result<[UInt8], RecordingError> {
        let descriptor = path == "-" ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC)
        func failure() -> Result<[UInt8], RecordingError> {
            .failure(RecordingError(file: name, "cannot read it: \(String(cString: strerror(errno)))"))
        }
        guard descriptor >= 0 else { return failure() }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        // One byte more than allowed, so that the reader finds that the file is too long.
        while bytes.count <= RecordingReader.mostBytes {
            let count = buffer.withUnsafeMutableBytes { Glibc.read(descriptor, $0.baseAddress, $0.count) }
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else { return failure() }
            if count == 0 { break }
            bytes += buffer[..<count]
        }
        return .success(bytes)
    }

    fileprivate func recording() throws(RecordingError) -> Recording {
        try RecordingReader.read(try content.get(), file: PlainText.escaping(file))
    }
}

extension DaemonEntry {
    /// Prints what would have run with the configuration. It reads the configuration and the recording, and touches
    /// nothing else. The calling task must run on the executor.
    package static func replay(
        _ request: ReplayRequest, _ options: DaemonOptions, on executor: ReplayExecutor
    ) async -> DaemonExit {
        do {
            let recording = try request.recording()
            let configuration = ConfigurationLocation.loader(options).load()
            for diagnostic in configuration.diagnostics where diagnostic.severity == .error {
                StandardStream.write(diagnostic.text() + "\n", to: STDERR_FILENO)
            }
            guard configuration.isValid else { return .configuration }
            let zones = ZoneFiles()
            let identity = MachineIdentity.read()?.bytes ?? MachineIdentity.hostName
            let replay = Replay(
                configuration.pipelines.map {
                    ReplayedPipeline($0, target: configuration.daemon.networkTarget, identity: identity)
                },
                limits: configuration.daemon.requestLimits,
                splay: configuration.daemon.splay * StableDelay.fraction(identity: identity, name: ""),
                zones: { zones.rules(named: $0) })
            let result = try await replay.run(recording, on: executor)
            if request.json { return StandardStream.answer(ControlJSON.text(of: result) + "\n") ? .success : .failure }
            let local = zones.rules(named: nil)
            let text = ReplayText(result) { Int64(local.offset(at: $0 / 1_000_000)) }
            return StandardStream.answer(text.lines.map { PlainText.escaping($0) + "\n" }.joined())
                ? .success : .failure
        } catch {
            StandardStream.write("freshetd: \(PlainText.escaping("\(error)"))\n", to: STDERR_FILENO)
            return .failure
        }
    }
}

extension ReplayedPipeline {
    /// - Parameters:
    ///   - target: the address of the daemon's configuration (`network-target`).
    ///   - identity: bytes that are unique to this host.
    fileprivate init(_ definition: PipelineDefinition, target: String?, identity: [UInt8]) {
        let network = NetworkSource.name(of: NetworkTarget(definition, daemonTarget: target))
        var signals = Set(definition.refresh.on.filter { $0 != .network }.map(\.rawValue))
        if definition.refresh.on.contains(.network) { signals.insert(network) }
        signals.formUnion(definition.refresh.dbus.map(BusSource.name(of:)))
        signals.formUnion(definition.refresh.files.map(FileMonitor.signalName(of:)))
        signals.formUnion(definition.refresh.after.map(CommitSignals.row(of:)))
        if definition.fleet != nil { signals.insert(SignalName.fleet) }
        self.init(
            definition, signals: signals, network: network,
            share: StableDelay.fraction(identity: identity, name: definition.name))
    }
}
