import CSystemd

extension BusLink {
    func subscribe(_ subscriber: Subscriber, to match: BusMatch) {
        checkThread()
        let text = match.rule
        if let rule = rules[text] {
            rule.subscribers.append(subscriber)
            subscriber.onStanding(rule.standing)
            return
        }
        let rule = Rule(match, initialStanding)
        rule.subscribers = [subscriber]
        rules[text] = rule
        if let name = match.wellKnownSender {
            owners[name, default: Owner()].uses += 1
            if isReady, owners[name]?.uses == 1 { follow(name) }
        }
        subscriber.onStanding(rule.standing)
        if isReady { install(text) }
    }

    func unsubscribe(_ subscriber: Subscriber, from match: BusMatch) {
        checkThread()
        let text = match.rule
        guard let rule = rules[text], let index = rule.subscribers.firstIndex(where: { $0 === subscriber }) else {
            return  // cancelled, and then released
        }
        rule.subscribers.remove(at: index)
        guard rule.subscribers.isEmpty else { return }
        rules[text] = nil
        if isReady { askDaemon("RemoveMatch", text) { _ in } }
        guard let name = match.wellKnownSender else { return }
        owners[name]?.uses -= 1
        if owners[name]?.uses == 0 {
            owners[name] = nil
            if isReady { askDaemon("RemoveMatch", Self.ownerMatch(name).rule) { _ in } }
        }
    }

    /// Follows who owns a name. The bus answers in order: when it has a rule that was asked for after this, the owner is
    /// known.
    func follow(_ name: String) {
        owners[name]?.fault = nil
        askDaemon("AddMatch", Self.ownerMatch(name).rule) { [weak self] answer in
            if case .failure(let error) = answer { self?.owners[name]?.fault = error.description }
        }
        askDaemon("GetNameOwner", name) { [weak self] answer in
            switch answer {
            case .success(let values):
                guard case .string(let owner)? = values.first else { return }
                self?.owners[name]?.uniqueName = owner
            case .failure: self?.owners[name]?.uniqueName = nil  // nobody owns it
            }
        }
    }

    func install(_ text: String) {
        guard let rule = rules[text] else { return }
        askDaemon("AddMatch", text) { [weak self, weak rule] answer in
            guard let self, let rule, self.rules[text] === rule else { return }
            if case .failure(let error) = answer {
                self.set(.refused(reason: error.description), of: rule)
            } else if let name = rule.match.wellKnownSender {
                self.tell(rule, of: self.owners[name])
            } else {
                self.set(.inForce(sender: nil), of: rule)
            }
        }
    }

    private func tell(_ rule: Rule, of owner: Owner?) {
        if let fault = owner?.fault {
            set(.refused(reason: fault), of: rule)
        } else {
            set(.inForce(sender: owner?.uniqueName), of: rule)
        }
    }

    private static func ownerMatch(_ name: String) -> BusMatch {
        BusMatch(
            valid: BusName.daemon, path: "/org/freedesktop/DBus", interface: BusName.daemon,
            member: "NameOwnerChanged", firstArgument: name)
    }

    private func askDaemon(
        _ member: String, _ argument: String, _ reply: @escaping (Result<[BusValue], BusError>) -> Void
    ) {
        let request = Request(
            destination: BusName.daemon, path: "/org/freedesktop/DBus", interface: BusName.daemon, member: member,
            arguments: [.string(argument)], timeout: .seconds(25))
        send(request, isOwn: true, reply)
    }

    // MARK: Signals

    func dispatch(_ message: BusMessage) {
        let sender = message.sender
        if sender == BusName.daemon, message.member == "NameOwnerChanged" { ownerChanged(message) }
        var hearers: [(Rule, Subscriber)] = []
        for rule in rules.values where message.agrees(with: rule.match) {
            guard isFrom(sender, rule.match) else {
                for subscriber in rule.subscribers { subscriber.onStranger() }
                continue
            }
            for subscriber in rule.subscribers { hearers.append((rule, subscriber)) }
        }
        for (rule, subscriber) in hearers where rule.subscribers.contains(where: { $0 === subscriber }) {
            subscriber.handler(message)
        }
    }

    private func isFrom(_ sender: String, _ match: BusMatch) -> Bool {
        if let name = match.wellKnownSender { return owners[name]?.uniqueName == sender }
        return match.sender == nil || match.sender == sender
    }

    private func ownerChanged(_ message: BusMessage) {
        guard let arguments = message.arguments, arguments.count == 3, case .string(let name) = arguments[0],
            case .string(let new) = arguments[2], owners[name] != nil
        else { return }
        owners[name]?.uniqueName = new.isEmpty ? nil : new
        for rule in rules.values.map({ $0 }) where rule.match.wellKnownSender == name {
            if case .inForce = rule.standing { tell(rule, of: owners[name]) }
        }
    }
}
