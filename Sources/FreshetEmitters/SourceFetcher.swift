package import FreshetPipelines

/// The engine's ``Fetching`` made real: HTTP, commands, files.
package struct SourceFetcher: Fetching {
    private let http: HTTPClient
    private let commands: CommandRunner
    private let files: FileReader

    package init(http: HTTPClient, commands: CommandRunner, files: FileReader) {
        self.http = http
        self.commands = commands
        self.files = files
    }

    package func fetch(_ request: FetchRequest) async throws(FetchError) -> FetchResult {
        switch request.source {
        case .http(let source):
            return try await http.fetch(source, for: request)
        case .command(let command):
            request.asked()
            // A command has no validators: it always runs, and its output is compared when it is committed.
            let bytes = try await commands.run(command, maxBytes: request.maxBytes, progress: request.progress)
            return .content(FetchedContent(bytes: bytes))
        case .file(let path):
            request.asked()
            return try await files.read(
                path, validators: request.validators, maxBytes: request.maxBytes, progress: request.progress)
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
