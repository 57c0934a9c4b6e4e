import FreshetPipelines
import Testing

@testable import FreshetEmitters

@Suite("The state machine of a transfer")
struct TransferStateMachineTests {
    let start: Location

    init() throws { start = try #require(Location("https://id.example.com/a/b?x=1")) }

    func hop(_ url: String, credentials: Bool) throws -> TransferStateMachine.Hop {
        let location = try #require(Location(url))
        return TransferStateMachine.Hop(
            location: location, carriesCredentials: credentials, isRedirected: location != start)
    }

    @Test("a transfer begins and ends with an answer; a later cancellation has no effect")
    func answer() throws {
        var machine = TransferStateMachine(start)
        #expect(machine.start() == .request(try hop("https://id.example.com/a/b?x=1", credentials: true)))
        #expect(machine.hopEnded(.final) == .answer)
        #expect(machine.cancel() == .none)
    }

    @Test("redirects are followed as configured", arguments: HTTPSource.Redirects.allCases)
    func redirects(_ redirects: HTTPSource.Redirects) throws {
        for (target, isSame) in [("/c", true), ("https://other.example/", false)] {
            var machine = TransferStateMachine(start, redirects: redirects)
            _ = machine.start()
            let end = machine.hopEnded(.redirect(status: 302, to: target))
            let isFollowed = if case .request = end { true } else { false }
            #expect(isFollowed == (redirects == .any || redirects == .sameOrigin && isSame))
            guard case .fail(let failure) = end else { continue }
            #expect(failure.kind == .refused && failure.message.hasSuffix("(source.redirects: \(redirects.rawValue))"))
        }
    }

    @Test("an unusable connection is replaced once, and a condition is omitted once")
    func again() throws {
        var machine = TransferStateMachine(start)
        _ = machine.start()
        var next = try hop("https://id.example.com/a/b?x=1", credentials: true)
        next.wantsNewConnection = true
        #expect(machine.hopEnded(.connectionUnusable) == .request(next))
        next.isConditional = false
        #expect(machine.hopEnded(.conditionRejected) == .request(next))
        #expect(machine.hopEnded(.conditionRejected) == .answer)
    }

    @Test("after a rest that is not certain the whole body is requested once, without continuations")
    func restRejected() throws {
        var machine = TransferStateMachine(start)
        _ = machine.start()
        let hop = try hop("https://id.example.com/a/b?x=1", credentials: true)
        #expect(machine.hopEnded(.broken(at: 10)) == .requestRest(hop))
        #expect(machine.hopEnded(.restRejected) == .request(hop))
        var other = machine
        #expect(machine.hopEnded(.broken(at: 20)) == .answer)
        #expect(other.hopEnded(.restRejected) == .answer)
    }

    @Test("a transfer that is cancelled in progress is abandoned once")
    func cancelled() {
        var machine = TransferStateMachine(start)
        _ = machine.start()
        #expect(machine.cancel() == .abandonAndAnswerCancelled)
        #expect(machine.cancel() == .none)
    }

    @Test("a transfer that is cancelled before it starts makes no request")
    func cancelledBefore() {
        var machine = TransferStateMachine(start)
        #expect(machine.cancel() == .none)
        #expect(machine.cancel() == .none)
        #expect(machine.start() == .answerCancelled)
        #expect(machine.cancel() == .none)
    }

    @Test("credentials are sent within the origin, not after a redirect leaves it, and not after a redirect back")
    func credentials() throws {
        var machine = TransferStateMachine(start)
        _ = machine.start()
        #expect(
            machine.hopEnded(.redirect(status: 302, to: "../c"))
                == .request(try hop("https://id.example.com/c", credentials: true)))
        #expect(
            machine.hopEnded(.redirect(status: 302, to: "https://ID.example.com:443/d"))
                == .request(try hop("https://ID.example.com:443/d", credentials: true)))
        #expect(
            machine.hopEnded(.redirect(status: 302, to: "//cdn.example.com/e"))
                == .request(try hop("https://cdn.example.com/e", credentials: false)))
        #expect(
            machine.hopEnded(.redirect(status: 302, to: "https://id.example.com/f"))
                == .request(try hop("https://id.example.com/f", credentials: false)))
        #expect(machine.hopEnded(.final) == .answer)
    }

    @Test(
        "another port, scheme or host is another origin",
        arguments: ["https://id.example.com:8443/", "https://example.com/", "https://id.example.com.evil.test/"])
    func otherOrigin(_ url: String) throws {
        var machine = TransferStateMachine(start)
        _ = machine.start()
        #expect(machine.hopEnded(.redirect(status: 307, to: url)) == .request(try hop(url, credentials: false)))
    }

    @Test("a redirect from https to http is not followed; from http to https it is, without credentials")
    func schemes() throws {
        var machine = TransferStateMachine(start)
        _ = machine.start()
        guard case .fail(let failure) = machine.hopEnded(.redirect(status: 302, to: "http://id.example.com/"))
        else {
            Issue.record("followed")
            return
        }
        #expect(failure.kind == .refused)
        #expect(machine.cancel() == .none)

        var upgraded = TransferStateMachine(try #require(Location("http://id.example.com/")))
        _ = upgraded.start()
        #expect(
            upgraded.hopEnded(.redirect(status: 302, to: "https://id.example.com/"))
                == .request(try hop("https://id.example.com/", credentials: false)))
    }

    @Test("the limit on redirects holds exactly")
    func limit() {
        var machine = TransferStateMachine(start)
        _ = machine.start()
        for number in 0..<TransferStateMachine.maxRedirects {
            guard case .request = machine.hopEnded(.redirect(status: 302, to: "/\(number)")) else {
                Issue.record("redirect \(number) was not followed")
                return
            }
        }
        guard case .fail(let failure) = machine.hopEnded(.redirect(status: 302, to: "/on")) else {
            Issue.record("followed")
            return
        }
        #expect(failure.kind == .refused && failure.message.contains("10"))
    }

    @Test("a POST stays a POST after 307 and 308 within its origin, and becomes a GET after other redirects")
    func methods() throws {
        let own = try #require(Location("https://id.example.com/c"))
        let other = try #require(Location("https://cdn.example.com/c"))
        func next(_ status: Int, _ url: String) -> TransferStateMachine.EndAction {
            var machine = TransferStateMachine(start, sendsBody: true)
            #expect(machine.start() == .request(.init(location: start, carriesCredentials: true, sendsBody: true)))
            return machine.hopEnded(.redirect(status: status, to: url))
        }
        for status in [307, 308] {
            #expect(
                next(status, own.url)
                    == .request(.init(location: own, carriesCredentials: true, sendsBody: true, isRedirected: true)))
            guard case .fail(let failure) = next(status, other.url) else {
                Issue.record("the body goes elsewhere after \(status)")
                return
            }
            #expect(failure.kind == .refused && failure.message.contains("only sent to the configured origin"))
        }
        for status in [301, 302, 303] {
            #expect(
                next(status, own.url)
                    == .request(.init(location: own, carriesCredentials: true, isRedirected: true)))
            #expect(
                next(status, other.url)
                    == .request(.init(location: other, carriesCredentials: false, isRedirected: true)))
        }
    }

    @Test("a request that has become a GET stays a GET")
    func noPostAgain() throws {
        var machine = TransferStateMachine(start, sendsBody: true)
        _ = machine.start()
        _ = machine.hopEnded(.redirect(status: 303, to: "/c"))
        #expect(
            machine.hopEnded(.redirect(status: 307, to: "/d"))
                == .request(try hop("https://id.example.com/d", credentials: true)))
    }

    @Test("redirects of a request through a socket are followed only within the origin")
    func socket() throws {
        func machine() -> TransferStateMachine {
            var machine = TransferStateMachine(start, staysAtOrigin: true)
            _ = machine.start()
            return machine
        }
        var staying = machine()
        #expect(
            staying.hopEnded(.redirect(status: 302, to: "/c"))
                == .request(try hop("https://id.example.com/c", credentials: true)))
        var leaving = machine()
        guard case .fail(let failure) = leaving.hopEnded(.redirect(status: 302, to: "https://cdn.example.com/")) else {
            Issue.record("followed")
            return
        }
        #expect(failure.kind == .refused && failure.message.contains("through a socket"))
    }

    @Test("the rest of a body is requested at most five times, and only while each request brings more")
    func resumptions() throws {
        let requested = try hop("https://id.example.com/a/b?x=1", credentials: true)
        var machine = TransferStateMachine(start)
        _ = machine.start()
        for number in 1...TransferStateMachine.maxResumptions {
            #expect(machine.hopEnded(.broken(at: number)) == .requestRest(requested))
        }
        #expect(machine.hopEnded(.broken(at: 1_000)) == .answer)
        #expect(machine.cancel() == .none)

        var stuck = TransferStateMachine(start)
        _ = stuck.start()
        #expect(stuck.hopEnded(.broken(at: 100)) == .requestRest(requested))
        #expect(stuck.hopEnded(.broken(at: 100)) == .answer)
        #expect(stuck.cancel() == .none)
    }

    @Test("a redirect of a request for the rest begins another body; earlier continuations count")
    func redirectedRest() throws {
        var machine = TransferStateMachine(start)
        _ = machine.start()
        _ = machine.hopEnded(.broken(at: 100))
        let next = try hop("https://id.example.com/c", credentials: true)
        #expect(machine.hopEnded(.redirect(status: 302, to: "/c")) == .request(next))
        for number in 2...TransferStateMachine.maxResumptions {
            #expect(machine.hopEnded(.broken(at: number)) == .requestRest(next))
        }
        #expect(machine.hopEnded(.broken(at: 1_000)) == .answer)
    }

    @Test("a transfer that is cancelled during the rest is abandoned")
    func cancelledRest() {
        var machine = TransferStateMachine(start)
        _ = machine.start()
        _ = machine.hopEnded(.broken(at: 100))
        #expect(machine.cancel() == .abandonAndAnswerCancelled)
    }
}

@Suite("Locations")
struct LocationTests {
    @Test("an origin has a scheme, a host in lower case, and a port, which may be implicit")
    func origin() throws {
        #expect(try #require(Location("http://Example.COM/x")).origin.port == "80")
        let secure = try #require(Location("https://example.com:8443/x#f"))
        #expect(secure.origin == Origin(scheme: "https", host: "example.com", port: "8443"))
        #expect(secure.url == "https://example.com:8443/x")
        #expect(try #require(Location("http://[::1]:81/")).origin.hostForPeople == "::1")
    }

    @Test("user information is removed from the URL and decoded, and is ignored in redirects")
    func userInformation() throws {
        let location = try #require(Location("http://me:p%40ss@example.com/x?q=1"))
        #expect(location.url == "http://example.com/x?q=1")
        #expect(location.user == "me" && location.password == "p@ss")
        let next = try #require(location.resolving("http://you:word@example.com/y"))
        #expect(next.user == nil && next.password == nil && next.url == "http://example.com/y")
    }

    @Test(
        "a text that is not an absolute URL of HTTP is not a location",
        arguments: ["", "/x", "example", "file:///x", "http://", "ftp://a/"])
    func invalid(_ url: String) {
        #expect(Location(url) == nil)
    }
}
