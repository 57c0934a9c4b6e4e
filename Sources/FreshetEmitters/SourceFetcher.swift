import FreshetEventLoop
package import FreshetPipelines

/// The engine's ``Fetching`` made real: HTTP, commands, files.
package struct SourceFetcher: Fetching {
    private let http: HTTPClient
    private let commands: CommandRunner
    private let files: FileReader
    /// Reads copies of other pipelines, which lie in the cache and not at a path that somebody names.
    private let copyFiles: FileReader
    /// The directory in which pipelines keep their copies.
    private let copies: String

    /// - Parameter copyFiles: with threads of its own; nil: that of the other files.
    package init(
        http: HTTPClient, commands: CommandRunner, files: FileReader, copyFiles: FileReader? = nil, copies: String
    ) {
        self.copyFiles = copyFiles ?? files
        self.copies = copies
        self.http = http
        self.commands = commands
        self.files = files
    }

    package func fetch(_ request: FetchRequest) async throws(FetchError) -> FetchResult {
        let caller = PathPool.Caller(pipeline: request.pipeline, waits: request.waitsForFile)
        switch request.source {
        case .http(let source):
            return try await http.fetch(source, for: request)
        case .command(let command):
            request.asked()
            // A command has no validators: it always runs, and its output is compared when it is committed.
            let output = try await commands.run(
                command, maxBytes: request.maxBytes, keeper: request.keeper, progress: request.progress)
            return .content(FetchedContent(output))
        case .file(let path):
            request.asked()
            return try await files.read(
                path, validators: request.validators, maxBytes: request.maxBytes, keeper: request.keeper,
                caller: caller, progress: request.progress)
        case .copy(let pipeline, let file):
            let path = "\(copies)/\(file)"
            guard !file.isEmpty, try await copyFiles.isThere(path, for: caller) else {
                throw .failed(RunFailure(.absent, "pipeline '\(pipeline)', of which this is made, has no copy yet"))
            }
            request.asked()
            return try await copyFiles.read(
                path, saysSize: true, validators: request.validators, maxBytes: request.maxBytes,
                keeper: request.keeper, caller: caller, progress: request.progress)
        case .joined:
            // The engine takes them apart, and asks for each by itself.
            throw .failed(RunFailure(.local, "several sources were asked as if they were one"))
        }
    }

    package func resolve(_ reference: String, against base: String) -> WebAddress? {
        guard let location = Location(base)?.resolving(reference) else { return nil }
        let origin = location.origin
        return WebAddress(
            url: location.url, host: origin.hostForPeople,
            origin: "\(origin.scheme)://\(origin.host):\(origin.port)")
    }
}
