import FreshetConfiguration
import FreshetControl
package import FreshetEventLoop
import FreshetFleet
import FreshetModel
import FreshetNATS
import FreshetPipelines
import FreshetSignals
import FreshetSystemd
import Glibc

extension DaemonEntry {
    /// Sets up or examines the buckets of the configured fleet.
    package static func manageFleet(
        _ request: FleetActionRequest, _ options: DaemonOptions, on loop: EventLoop
    ) async -> DaemonExit {
        let configuration = ConfigurationLocation.loader(options).load()
        guard configuration.isDaemonValid else {
            for diagnostic in configuration.daemonDiagnostics {
                StandardStream.write(diagnostic.text() + "\n", to: STDERR_FILENO)
            }
            return .configuration
        }
        guard let fleet = configuration.daemon.fleet else {
            StandardStream.write(
                "freshetd: freshet.yaml has no 'fleet'; add the section first: fleet: {name: …, servers: […], …}\n",
                to: STDERR_FILENO)
            return .configuration
        }
        let isEnded = OneTimeEvent()
        let termination = try? SignalDescriptor(loop, [SIGTERM, SIGINT, SIGHUP]) { _ in isEnded.happen() }
        defer { withExtendedLifetime(termination) {} }
        do throws(FleetMembershipError) {
            let seed: NKeySeed?
            if let given = request.seed {
                seed = given
            } else {
                seed = try fleet.seed(from: Credentials(environment: options.environment))
            }
            let session = FleetSession(
                request: request, fleet: fleet, client: try fleet.client(on: loop, seed, named: "freshetd --fleet"),
                loop: loop, key: seed?.publicKey)
            return await interruptible(by: isEnded, otherwise: .failure) { await session.run() }
        } catch {
            StandardStream.write("freshetd: \(PlainText.escaping(error.description))\n", to: STDERR_FILENO)
            return .failure
        }
    }
}

/// One use of a fleet's servers from the command line.
private struct FleetSession: Sendable {
    let request: FleetActionRequest
    let fleet: FleetDefinition
    let client: NATSClient
    let loop: EventLoop
    /// The public key of the user; nil: the servers need none.
    let key: String?

    private var buckets: FleetBuckets {
        FleetBuckets(FleetStore(client, domain: fleet.domain), replicas: request.replicas)
    }

    func run() async -> DaemonExit {
        await withTaskGroup(of: DaemonExit?.self) { group in
            group.addTask {
                await client.run()
                return nil
            }
            group.addTask { await act() }
            var exit = DaemonExit.failure
            for await result in group {
                guard let result else { continue }
                exit = result
                group.cancelAll()
            }
            return exit
        }
    }

    private func act() async -> DaemonExit {
        if let reason = await connectionError() {
            print("error", "connection", "\(reason)\(remedy(for: reason))")
            return .failure
        }
        switch request.action {
        case .setup: return await setUp()
        case .doctor: return await examine() ? .success : .failure
        case .key, .accounts: return .success
        case .status, .refresh, .halt, .resume: return await review()
        }
    }

    // MARK: Status and orders

    private func review() async -> DaemonExit {
        do {
            let store = FleetStore(client, domain: fleet.domain)
            let survey = FleetSurvey(store, fleet: fleet.name, publishers: try fleet.publisherKeys())
            let review = FleetReview(survey: survey, store: store, client: client, loop: loop, name: fleet.name)
            guard let pipeline = request.pipelines.first, request.action.needsPipeline else {
                let overview = try await review.overview(of: request.pipelines)
                return StandardStream.answer(ControlJSON.text(of: overview) + "\n") ? .success : .failure
            }
            let kind: FleetOrder.Kind? =
                switch request.action {
                case .halt: .halt
                case .resume: .resume
                default: nil
                }
            switch try await review.request(kind, pipeline, within: request.patience) {
            case .success(let text): print("ok", pipeline, text)
            case .failure(let error):
                print("error", pipeline, error.description)
                if case .noAnswer = error { return .tryLater }
                return .failure
            }
            return .success
        } catch let error as FleetStoreError {
            print("error", request.action.rawValue, "\(error)\(Self.remedy(for: error))")
        } catch {
            print("error", request.action.rawValue, "\(error)")
        }
        return .failure
    }

    /// Why there is no connection; nil: there is one.
    private func connectionError() async -> NATSError? {
        for await event in client.events {
            switch event {
            case .state(.connected): return nil
            case .state(.disconnected(let error, _)), .state(.refused(let error, _)): return error
            default: continue
            }
        }
        return .stopped
    }

    private func remedy(for error: NATSError) -> String {
        switch error {
        case .refused: "; add the user \(key ?? "") to the server's configuration, or use the seed of another user"
        case .connectionFailed: "; check fleet.servers, the firewall, and 'handshake_first: true' in the server"
        default: ""
        }
    }

    private func print(_ result: String, _ subject: String, _ text: String) {
        func padded(_ text: String, _ width: Int) -> String {
            text + String(repeating: " ", count: max(0, width - text.count))
        }
        _ = StandardStream.answer("\(padded(result, 7)) \(padded(subject, 14)) \(PlainText.escaping(text))\n")
    }

    // MARK: Setup

    private func setUp() async -> DaemonExit {
        guard !request.isForMirror else { return await setUpMirror() }
        let servers = await client.state.description
        StandardStream.write("\(PlainText.escaping(servers))\n", to: STDERR_FILENO)
        for bucket in FleetBucket.allCases {
            let limit = FleetBuckets.standardLimits(bucket).bytes
            StandardStream.write(
                "  \(bucket.stream): a stream of at most \(limit >> 20) MiB on \(request.replicas) of the servers\n",
                to: STDERR_FILENO)
        }
        guard request.isConfirmed || isConfirmed() else { return .failure }
        var isGood = true
        for bucket in FleetBucket.allCases {
            do throws(FleetStoreError) {
                let outcome = try await buckets.prepare(bucket, FleetBuckets.standardLimits(bucket))
                let state = try await buckets.state(bucket)
                guard state.fits(bucket) else {
                    isGood = false
                    print("error", bucket.stream, Self.unfit(bucket, state))
                    continue
                }
                print("ok", bucket.stream, "\(outcome)")
            } catch {
                isGood = false
                print("error", bucket.stream, "\(error)\(Self.remedy(for: error))")
            }
        }
        return isGood ? .success : .failure
    }

    private func setUpMirror() async -> DaemonExit {
        guard let domain = fleet.domain, let site = fleet.mirror else {
            StandardStream.write(
                "freshetd: freshet.yaml has no fleet.mirror; add the domain of JetStream at this site: mirror: site\n",
                to: STDERR_FILENO)
            return .configuration
        }
        StandardStream.write("\(PlainText.escaping(await client.state.description))\n", to: STDERR_FILENO)
        for bucket in FleetBucket.mirrored {
            let limit = FleetBuckets.standardLimits(bucket).bytes
            StandardStream.write(
                "  \(bucket.stream) in the domain \(site): a mirror of the domain \(domain), of at most \(limit >> 20) MiB"
                    + " on \(request.replicas) of the servers\n",
                to: STDERR_FILENO)
        }
        guard request.isConfirmed || isConfirmed() else { return .failure }
        let buckets = FleetBuckets(FleetStore(client, domain: site), replicas: request.replicas)
        var isGood = true
        for bucket in FleetBucket.mirrored {
            do throws(FleetStoreError) {
                let outcome = try await buckets.prepareMirror(
                    bucket, FleetBuckets.standardLimits(bucket), of: domain, at: site)
                print("ok", "\(site) \(bucket.stream)", "\(outcome)")
            } catch {
                isGood = false
                print("error", "\(site) \(bucket.stream)", "\(error)\(Self.remedy(for: error))")
            }
        }
        return isGood ? .success : .failure
    }

    private func isConfirmed() -> Bool {
        guard isatty(STDIN_FILENO) == 1 else {
            StandardStream.write(
                "freshetd: standard input is not a terminal; use --yes to create the buckets\n", to: STDERR_FILENO)
            return false
        }
        StandardStream.write("Create or change these buckets? [y/N] ", to: STDERR_FILENO)
        let answer = readLine() ?? ""
        return ["y", "yes"].contains(answer.lowercased())
    }

    private static func unfit(_ bucket: FleetBucket, _ state: FleetBuckets.State) -> String {
        if bucket == .claim, !state.hasLifetimes {
            return
                "the server ignores the lifetime of messages, so a claim would never end; use nats-server 2.11 or newer"
        }
        return "its configuration is not that of a fleet; run 'freshetctl fleet setup'"
    }

    private static func remedy(for error: FleetStoreError) -> String {
        switch error {
        case .refused(code: FleetBuckets.notFound, _): "; create it with 'freshetctl fleet setup'"
        case .nats(.notPermitted): "; add the right to this user in the server's configuration (docs/fleet.md)"
        // A server that does not permit a request answers nothing.
        case .nats(.timedOut): "; the user may lack the right, or the disk of the server is full"
        default: ""
        }
    }

    // MARK: Examination

    private func examine() async -> Bool {
        var isGood = true
        func check(_ subject: String, _ body: () async throws(FleetStoreError) -> String?) async {
            do throws(FleetStoreError) {
                guard let error = try await body() else { return }
                isGood = false
                print("error", subject, error)
            } catch {
                isGood = false
                print("error", subject, "\(error)\(Self.remedy(for: error))")
            }
        }
        let info = await client.state.serverInfo
        print("ok", "connection", await client.state.description)
        await check("version") { () throws(FleetStoreError) in
            guard info?.isAtLeast(2, 11) ?? false else { return "use nats-server 2.11 or newer" }
            print("ok", "version", "2.11 or newer")
            return nil
        }
        await check("publishers") { () throws(FleetStoreError) in
            guard fleet.role == .fetch, let key else { return nil }
            guard fleet.publishers.contains(key) else {
                return "\(key) is not among fleet.publishers, so no member accepts its records; add it on all machines"
            }
            print("ok", "publishers", "the records of this key count")
            return nil
        }
        for bucket in FleetBucket.allCases {
            await check(bucket.stream) { () throws(FleetStoreError) in
                let state: FleetBuckets.State
                do throws(FleetStoreError) {
                    state = try await buckets.state(bucket)
                } catch  where Self.seesNoConfiguration(error) {
                    try await examineReading(bucket)
                    return nil
                }
                guard state.fits(bucket) else { return Self.unfit(bucket, state) }
                guard state.limits.bytes > 0 else {
                    return "it has no limit, and a full disk stops JetStream; run 'freshetctl fleet setup'"
                }
                let share = state.bytes / max(1, state.limits.bytes / 100)
                guard share < 90 else { return "\(share) % of its limit are used; raise max_bytes of the stream" }
                print("ok", bucket.stream, "\(state.messages) messages, \(share) % of \(state.limits.bytes >> 20) MiB")
                if bucket == .head { printClock(state.time) }
                return nil
            }
        }
        if let site = fleet.mirror {
            let mirrors = FleetBuckets(FleetStore(client, domain: site), replicas: request.replicas)
            for bucket in FleetBucket.mirrored {
                let subject = "\(site) \(bucket.stream)"
                await check(subject) { () throws(FleetStoreError) in
                    let state: FleetBuckets.State
                    do throws(FleetStoreError) {
                        state = try await mirrors.state(bucket)
                    } catch {
                        // The server states the error about a subject without its domain, so it seems not to answer.
                        _ = try await FleetStore(client, domain: site).newest(in: bucket)
                        print("ok", subject, "can be read")
                        return nil
                    }
                    guard let mirror = state.mirror else {
                        return "it is not a mirror; run 'freshetctl fleet setup --mirror' with other names"
                    }
                    guard mirror.isConnected else {
                        return
                            "it has received nothing from the domain \(fleet.domain ?? "") lately; check the leaf node"
                    }
                    print("ok", subject, "a mirror, \(mirror.lag) messages behind")
                    return nil
                }
            }
        }
        if fleet.role == .fetch {
            await check("claims") { () throws(FleetStoreError) in try await examineClaims() }
        }
        return isGood
    }

    /// Whether the user belongs to another account than that of the buckets.
    private static func seesNoConfiguration(_ error: FleetStoreError) -> Bool {
        switch error {
        case .refused(code: FleetBuckets.notInAccount, _), .nats(.notPermitted): true
        default: false
        }
    }

    /// For a user that sees no configuration: whether the bucket can be read.
    private func examineReading(_ bucket: FleetBucket) async throws(FleetStoreError) {
        do throws(FleetStoreError) {
            _ = try await FleetStore(client, domain: fleet.domain).newest(in: bucket)
            print("ok", bucket.stream, "can be read; its limits are visible to users of the account STORE only")
        } catch .nats(.notPermitted) {
            // Members need neither reports nor orders.
            guard bucket != .report, bucket != .want else { return }
            throw .nats(.notPermitted("DIRECT.GET.\(bucket.stream)"))
        }
    }

    private func printClock(_ time: WallTime) {
        let error = time.duration(to: .now)
        // The members use the server's clock; certificates and the content's own times use that of the machine.
        let isLarge = error > .seconds(60) || error < .seconds(-60)
        print(
            isLarge ? "warning" : "ok", "clock", "\(error.rounded) from the server's\(isLarge ? "; set the clock" : "")"
        )
    }

    /// Stores a claim that nobody uses, and looks whether it ends by itself.
    private func examineClaims() async throws(FleetStoreError) -> String? {
        let store = FleetStore(client, domain: fleet.domain)
        let key = "doctor.\(UInt64.random(in: 0...(.max)))"
        let holder = FleetClaim.Holder(machine: "doctor", nonce: "1")
        let changes: NATSSubscription
        do throws(NATSError) {
            changes = try await client.subscribe(
                try NATSSubjectPattern("\(FleetBucket.claim.republished ?? "")\(key)"))
        } catch {
            throw .nats(error)
        }
        // The server removes the claim within a second or two.
        let timer = LoopTimer(loop, named: "fleet") { changes.cancel() }
        timer.arm(at: .now + .seconds(5))
        try await store.put(.claim, key, holder.text, replacing: 0, lifetime: .seconds(1))
        // The first change is the claim itself, the second one its end.
        var received = 0
        while received < 2, case .message? = try? await changes.next() { received += 1 }
        timer.disarm()
        if received == 2 {
            print("ok", "claims", "a claim can be stored, and ends by itself")
            return nil
        }
        return "a claim does not end by itself; use nats-server 2.11 or newer, and run 'freshetctl fleet setup'"
    }
}
