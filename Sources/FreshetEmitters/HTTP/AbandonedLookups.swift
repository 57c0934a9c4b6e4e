import CCurl
import FreshetModel
import FreshetPipelines
import Glibc

/// Lookups of names that still wait for the resolver although their requests have ended.
///
/// libcurl looks up a name with getaddrinfo(3) on a thread, which cannot be interrupted. If the request ends first, by
/// its deadline or because it is cancelled, the thread and its descriptors remain until the resolver gives up. So a
/// name server that does not answer would cost a thread for each attempt. This type limits the threads: a name with
/// ``maxPerHost`` such lookups is not looked up again until one of the lookups has certainly ended. There are at most
/// ``maxInTotal`` of these threads, besides one thread for each request of the request limit.
struct AbandonedLookups {
    /// The longest time of a lookup: resolv.conf(5) has a timeout of 5 s, 2 attempts and at most 3 name servers by
    /// default.
    static let lifetime: Duration = .seconds(30)
    /// The most abandoned lookups of one name: enough for the attempts of a pipeline whose resolver is sometimes slow.
    static let maxPerHost = 4
    /// The number of abandoned lookups from which a name with abandoned lookups is not looked up again.
    static let maxWithoutOthers = 128
    /// The number of abandoned lookups from which no name is looked up. Together with all other threads it is below
    /// `TasksMax=` of the unit (1,024).
    static let maxInTotal = 256

    /// Why a name is not looked up now.
    enum Refusal: Hashable {
        /// The number of lookups of the name itself that still wait.
        case host(Int)
        /// The number of lookups of other names that still wait.
        case others(Int)
    }

    /// The abandoned lookups and their latest ends, in the order in which they were abandoned.
    private var ends: [(host: String, at: BootInstant)] = []
    private var counts: [String: Int] = [:]

    /// Adds the lookup of a host whose request has ended first.
    mutating func add(_ host: String, at now: BootInstant) {
        removeEnded(at: now)
        ends.append((host, now + Self.lifetime))
        counts[host, default: 0] += 1
    }

    /// Why a host must not be looked up; nil if the lookup is allowed.
    mutating func refusal(of host: String, at now: BootInstant) -> Refusal? {
        removeEnded(at: now)
        let own = counts[host] ?? 0
        if own >= Self.maxPerHost || (own > 0 && ends.count >= Self.maxWithoutOthers) { return .host(own) }
        return ends.count >= Self.maxInTotal ? .others(ends.count) : nil
    }

    private mutating func removeEnded(at now: BootInstant) {
        let ended = ends.prefix { $0.at <= now }
        guard !ended.isEmpty else { return }
        for (host, _) in ended {
            let left = (counts[host] ?? 1) - 1
            counts[host] = left > 0 ? left : nil
        }
        ends.removeFirst(ended.count)
    }
}

extension AbandonedLookups.Refusal {
    /// The failure of a request for the host.
    func failure(of host: String) -> RunFailure {
        switch self {
        case .host(let count):
            RunFailure(
                .connection,
                "could not resolve \(host): the resolver has not answered, and \(count) "
                    + "\(count == 1 ? "lookup is" : "lookups are") still waiting")
        case .others(let count):
            RunFailure(
                .connection,
                "could not resolve \(host): the resolver has not answered \(count) lookups of other hosts, which are "
                    + "still waiting")
        }
    }
}

/// Limits the lookups of one client. Not `Sendable`: it is used on the loop's thread only, also by libcurl's callbacks.
final class LookupLimiter {
    private var lookups = AbandonedLookups()

    /// Why a host must not be looked up now; nil if the lookup is allowed. An address needs no lookup.
    func failure(of host: String) -> RunFailure? {
        guard let refusal = lookups.refusal(of: host, at: .now) else { return nil }
        if case .others = refusal, Self.isAddress(host) { return nil }
        return refusal.failure(of: host)
    }

    /// A request has ended or is about to be removed.
    func ended(_ exchange: HTTPExchange) {
        if let host = exchange.waitsForLookup { lookups.add(host, at: .now) }
    }

    private static func isAddress(_ host: String) -> Bool {
        var address = in6_addr()
        return host == "localhost" || inet_pton(AF_INET, host, &address) == 1
            || inet_pton(AF_INET6, host, &address) == 1
    }
}

extension HTTPExchange {
    /// Sets the callback that libcurl calls before it looks up a name. libcurl does not call it if it reuses a
    /// connection or a cached answer of the resolver.
    func limitLookups() {
        freshet_curl_set_pointer(easy.raw, CURLOPT_RESOLVER_START_DATA, Unmanaged.passUnretained(self).toOpaque())
        freshet_curl_set_resolver_function(easy.raw) { _, _, exchange in
            guard let exchange else { return 1 }
            // The exchange outlives its request, as for the other callbacks.
            return Unmanaged<HTTPExchange>.fromOpaque(exchange).takeUnretainedValue().mayLookUp() ? 0 : 1
        }
    }
}
