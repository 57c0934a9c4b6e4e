import FreshetEventLoop
package import FreshetPipelines

/// Fetches sources for the engine: over HTTP, from commands and from files.
package struct SourceFetcher: Fetching {
    private let http: HTTPClient
    private let commands: CommandRunner
    private let files: FileReader
    /// Reads copies of other pipelines. These are in the cache, not at a path from the configuration.
    private let copyFiles: FileReader
    /// The directory of the pipelines' copies.
    private let copies: String

    /// - Parameter copyFiles: a reader with its own threads; nil to share the threads of `files`.
    package init(
        http: HTTPClient, commands: CommandRunner, files: FileReader, copyFiles: FileReader? = nil, copies: String
    ) {
        self.copyFiles = copyFiles ?? files.forCopies
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
            // A command has no validators: it always runs, and the commit compares its output.
            let output = try await commands.run(
                command, maxBytes: request.maxBytes, bodyStore: request.bodyStore, progress: request.progress)
            return .content(FetchedContent(output))
        case .file(let path):
            request.asked()
            return try await files.read(
                path, validators: request.validators, maxBytes: request.maxBytes, bodyStore: request.bodyStore,
                caller: caller, progress: request.progress)
        case .copy(let pipeline, let file):
            let path = "\(copies)/\(file)"
            guard !file.isEmpty, try await copyFiles.exists(path, for: caller) else {
                throw .failed(RunFailure(.absent, "the source pipeline '\(pipeline)' has no copy yet"))
            }
            request.asked()
            return try await copyFiles.read(
                path, reportsSize: true, validators: request.validators, maxBytes: request.maxBytes,
                bodyStore: request.bodyStore, caller: caller, progress: request.progress)
        case .joined:
            // The engine fetches each of the joined sources separately.
            throw .failed(RunFailure(.local, "internal error: joined sources were fetched as one source"))
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
