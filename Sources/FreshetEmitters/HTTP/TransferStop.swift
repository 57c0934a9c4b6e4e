import FreshetPipelines

/// Why a callback ended a request; libcurl itself only reports that a callback stopped it.
enum TransferStop: Error {
    case tooLarge(announced: UInt64?)
    /// The request or its answer is not accepted, for the reason in the failure.
    case refused(RunFailure)
    /// The body of a redirect or of an error is long: reading it costs more than a new connection.
    case uninteresting
    /// The received data is not certainly the rest of the body.
    case wrongRest(RunFailure)
    /// The head or the trailers violate HTTP, or are too long.
    case violation(ResponseHead.Violation)
    /// The content coding of the body cannot be decoded.
    case undecodable(ContentDecoder.Failure)
    /// The reused connection has data to read before the request is written.
    case connectionNotIdle
    /// The proxy's answer to CONNECT has no end.
    ///
    /// - Parameter status: 0 if the proxy sent no status.
    case endlessProxy(status: Int)
    /// The origin keeps libcurl busy without an end.
    case endless
    /// A redirect led to an address that only this machine or its network should reach.
    case privateAddress(String, AddressClass)

    /// The failure of the request; nil: libcurl's result says why it failed.
    ///
    /// - Parameters:
    ///   - host: the host of the hop.
    ///   - limit: the most bytes of the body.
    ///   - role: the role of the request.
    func failure(at host: String, limit: UInt64, role: RequestRole) -> RunFailure? {
        switch self {
        case .wrongRest(let failure), .refused(let failure): failure
        case .violation(let violation): RunFailure(.transient, "\(host) sent \(violation)")
        case .undecodable(let failure):
            RunFailure(.content, "the body of \(host) cannot be decoded: \(failure.reason)")
        case .privateAddress(let address, let reach):
            RunFailure(
                .refused,
                "a redirect leads to \(host) at \(address), \(reach.words); not followed: the configured origin is not "
                    + "there")
        case .endlessProxy(let status):
            RunFailure(
                .transient,
                "the proxy did not connect to \(host): its answer\(status > 0 ? " \(status)" : "") has no end; check the "
                    + "proxy's URL and password")
        case .endless: RunFailure(.transient, "\(host) sent data that has no end and is not a body")
        case .connectionNotIdle: RunFailure(.transient, "\(host) sent data before the request")
        case .tooLarge(let announced?):
            SizeLimit.exceeded(by: host, announcing: announced, limit: limit, role: role)
        case .tooLarge(nil): SizeLimit.exceeded(by: host, limit: limit, role: role)
        case .uninteresting: nil
        }
    }
}
