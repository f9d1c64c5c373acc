// Part of the driver (driver.js): completion and inspection. Nothing is evaluated that has side
// effects: V8 stops at the first one.

const KEYWORDS = ('async await break case catch class const continue debugger default delete do else export extends false ' +
	'finally for function if import in instanceof let new null return static super switch this throw true try typeof ' +
	'undefined var void while with yield').split(' ');

const toUnits = (code, points) => (points < 0 ? code.length : Array.from(code).slice(0, points).join('').length);
const toPoints = (code, units) => Array.from(code.slice(0, units)).length;

// The value of an expression that has no side effects: {value}, or nothing.
function peek(expression) {
	const first = /[\w$]+/.exec(expression)?.[0];

	// Loaded when it is first used, which is no effect that matters.
	if (Module.builtinModules.includes(first))
		void global_[first];
	const reply = post('Runtime.evaluate', {
		expression, throwOnSideEffect: true, silent: true, timeout: 500, objectGroup: 'peek', replMode: false,
	});

	if (!reply || reply.error || reply.exceptionDetails)
		return undefined;
	const value = take(reply.result);

	session.post('Runtime.releaseObjectGroup', { objectGroup: 'peek' });
	return { value };
}

function propertiesOf(value) {
	const names = new Set();

	for (let o = value === null || value === undefined ? null : Object(value), n = 0; o && n < 20; n++) {
		if (util.types.isProxy(o))
			break;
		for (const name of Object.getOwnPropertyNames(o).slice(0, 5000))
			if (/^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(name))
				names.add(name);
		o = Object.getPrototypeOf(o);
	}
	return names;
}

// What a chain of names, calls aside, ends with: [its beginning, what is before the last dot, the rest].
const CHAIN = /(?:(?<base>(?:[\p{ID_Start}$_][\p{ID_Continue}$]*|\)|\]|"[^"\\\n]*"|'[^'\\\n]*')(?:\s*\??\.\s*[\p{ID_Start}$_][\p{ID_Continue}$]*|\[(?:\d+|"[^"\\\n]*"|'[^'\\\n]*')\])*)\s*\??\.\s*)?(?<word>[\p{ID_Start}$_]?[\p{ID_Continue}$]*)$/u;

function complete(code, cursor) {
	const at = toUnits(code, cursor);
	const before = code.slice(Math.max(0, at - 10000), at);
	const quoted = /(?:\brequire\(|\bimport\(|\bfrom|\bimport)\s*(["'])([^"'\n]*)$/.exec(before);
	let word, names;

	if (quoted) {
		word = quoted[2];
		names = moduleNames(word);
	} else {
		const found = CHAIN.exec(before).groups;

		word = found.word;
		if (found.base !== undefined) {
			const base = /^[)\]]/.test(found.base) ? undefined : peek(`(${found.base})`);

			names = base ? propertiesOf(base.value) : new Set();
		} else if (/[.)\]]\s*$/.test(before.slice(0, before.length - word.length)) && /\.\s*$/.test(before.slice(0, before.length - word.length))) {
			names = new Set();
		} else {
			names = propertiesOf(global_);
			for (const name of post('Runtime.globalLexicalScopeNames', {})?.names ?? [])
				names.add(name);
			if (word)
				KEYWORDS.forEach((k) => names.add(k));
		}
	}
	const matches = [...names].filter((n) => n.startsWith(word)).sort().slice(0, 500);

	return { matches, start: toPoints(code, at - word.length), end: toPoints(code, at) };
}

function moduleNames(word) {
	if (!/^\.{0,2}\//.test(word))
		return new Set(Module.builtinModules.filter((m) => !m.startsWith('_')).flatMap((m) => [m, `node:${m}`]));
	const directory = word.slice(0, word.lastIndexOf('/') + 1);

	try {
		return new Set(fs.readdirSync(path.resolve(here(), directory), { withFileTypes: true })
			.map((e) => directory + e.name + (e.isDirectory() ? '/' : '')));
	} catch {
		return new Set();
	}
}

function inspectAt(code, cursor) {
	let at = toUnits(code, cursor);
	const isPart = /[\p{ID_Continue}$]/u;

	while (at < code.length && isPart.test(code[at]))
		at++;
	const found = CHAIN.exec(code.slice(Math.max(0, at - 10000), at)).groups;

	if (!found.word || /^[)\]]/.test(found.base ?? ''))
		return '';
	const expression = found.base === undefined ? found.word : `${found.base}.${found.word}`;
	const got = peek(`(${expression})`);

	if (!got)
		return '';
	if (typeof got.value === 'function') {
		const source = Function.prototype.toString.call(got.value);
		const lines = source.split('\n');

		return `${expression}: ${/^class\b/.test(source) ? 'class' : 'function'}\n` +
			(lines.length > 30 ? [...lines.slice(0, 30), '...'].join('\n') : source);
	}
	return `${expression}: ${got.value === null ? 'null' : typeof got.value}\n${show(got.value, { depth: 1, maxArrayLength: 20 })}`.slice(0, 20000);
}

function ask(kind, id, cursor, code) {
	if (running) {
		send(REFUSED, id, 0, '', 'an execution is under way');
	} else {
		try {
			if (kind === COMPLETE)
				send(REPLY, id, 0, 'application/json', JSON.stringify(complete(code, cursor)));
			else
				send(REPLY, id, 0, 'text/plain', inspectAt(code, cursor));
		} catch (error) {
			send(REFUSED, id, 0, '', messageOf(error).split('\n')[0].slice(0, 200));
		}
	}
	fs.writeSync(REPORTS, '\n');
}

