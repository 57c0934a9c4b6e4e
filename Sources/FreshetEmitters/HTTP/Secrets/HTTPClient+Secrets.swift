import FreshetModel
import FreshetPipelines

/// The secrets of requests.
extension HTTPClient {
    /// The most access tokens that are kept: more than any configuration has clients.
    static let tokensLimit = 1_024

    /// The secrets of a request's header fields, by their keys. Files are read, and access tokens are requested if
    /// there are none; service credentials are those that were read last.
    func secrets(of source: HTTPSource, for request: FetchRequest) async throws(FetchError) -> [String: String] {
        var secrets: [String: String] = [:]
        for header in source.headers {
            guard case .credential(let name, let form) = header.value else { continue }
            let key = form.key(of: name)
            if case .oauth2(let client) = form {
                secrets[key] = try await token(of: client, name, source, request, refused: nil)
            } else if let secretReader, CredentialName.isPath(name) {
                secrets[key] = try await secretReader.secret(name)
            } else {
                secrets[key] = credentials[name]
            }
        }
        return secrets
    }

    /// Reads the secrets again that an origin has refused.
    ///
    /// - Parameter status: 401 or 403. A new access token is requested after 401 only: after 403, the token is valid
    ///   (RFC 6750, 3.1).
    /// - Returns: nil: they have not changed, or cannot be read.
    func renewed(
        _ secrets: [String: String], after status: Int, of source: HTTPSource, for request: FetchRequest
    ) async -> [String: String]? {
        guard let secretReader else { return nil }
        var renewed = secrets
        for header in source.headers {
            guard case .credential(let name, let form) = header.value else { continue }
            let key = form.key(of: name)
            do throws(FetchError) {
                if case .oauth2(let client) = form {
                    guard status == 401 else { continue }
                    renewed[key] = try await token(of: client, name, source, request, refused: secrets[key])
                } else {
                    let secret = try await secretReader.secret(name)
                    renewed[key] = secret
                    if !CredentialName.isPath(name) { credentials[name] = secret }
                }
            } catch {
                // The refusal of the origin is the failure of the run.
                continue
            }
        }
        return renewed.hasSameBytes(as: secrets) ? nil : renewed
    }

    // MARK: Access tokens

    /// The access token of a client: the one that is kept, or a new one. Concurrent callers share one request.
    ///
    /// - Parameters:
    ///   - secret: the name of the client's secret.
    ///   - source: the request that needs the token.
    ///   - refused: a token that the origin has refused; nil: none.
    private func token(
        of client: OAuth2Client, _ secret: String, _ source: HTTPSource, _ request: FetchRequest, refused: String?
    ) async throws(FetchError) -> String {
        let key = client.key(withSecret: secret)
        let broker: TokenBroker
        if let known = tokens[key] {
            broker = known
        } else {
            // Callers keep the brokers that they use.
            if tokens.count >= Self.tokensLimit { tokens = [:] }
            broker = TokenBroker()
            tokens[key] = broker
        }
        let arrival = broker.machine.attempts
        guard await broker.turn.enter() else { throw .cancelled }
        defer { broker.turn.leave() }
        switch broker.machine.ask(since: arrival, refused: refused, at: .now) {
        case .use(let token): return token
        case .fail(let failure): throw .failed(failure)
        case .request: break
        }
        let start = BootInstant.now
        do throws(FetchError) {
            let answer = try await requestToken(of: client, secret, source, request)
            secretReader?.redact(answer.token, of: key)
            broker.machine.received(answer.token, life: answer.life, from: start)
            return answer.token
        } catch {
            // A cancelled caller says nothing about the server.
            if case .failed(let failure) = error { broker.machine.failed(failure) }
            throw error
        }
    }

    private func requestToken(
        of client: OAuth2Client, _ secret: String, _ source: HTTPSource, _ request: FetchRequest
    ) async throws(FetchError) -> TokenAnswer {
        var tokenSource = client.tokenRequest(withSecret: secret)
        tokenSource.proxy = source.proxy
        if let token = Location(tokenSource.url)?.origin, token == Location(source.url)?.origin {
            tokenSource.certificateAuthority = source.certificateAuthority
        }
        do throws(FetchError) {
            let result = try await fetch(
                tokenSource,
                for: FetchRequest(
                    source: .http(tokenSource), maxBytes: TokenAnswer.sizeLimit, epoch: request.epoch,
                    asked: request.asked), as: .tokenEndpoint)
            guard case .content(let content) = result else { throw .failed(RunFailure(.transient, "no answer")) }
            let bytes = try await content.body.content()
            do throws(TokenAnswer.ValidationError) {
                return try TokenAnswer(bytes)
            } catch {
                throw .failed(RunFailure(.refused, error.sentence))
            }
        } catch {
            guard case .failed(var failure) = error else { throw error }
            failure.message = "no access token from \(client.host): \(failure.message)"
            // This status is not one of the source.
            failure.status = nil
            throw .failed(failure)
        }
    }
}

/// The access token of one client. It belongs to its ``HTTPClient`` and is used on the loop's thread only.
final class TokenBroker {
    var machine = TokenMachine()
    /// One caller at a time asks the machine, and requests a token if necessary.
    let turn = AsyncSemaphore(limit: 1)
}
