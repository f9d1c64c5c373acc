// What node runs in a session: cells of code in its own global context, over the kernel channel
// (docs/kernel-protocol.md).
//
// The kernel host (kernels/host/) is the parent. Its messages come on descriptor 3, each whole after
// one header; 4 takes a line for it; 5 is the page that is shared with it (struct page in host.h); 6
// is the channel itself, a socket of packets, of which each is one system call: what ends or
// interrupts this process leaves no half of one.
//
// Code is evaluated by V8's inspector in its mode for consoles: let, const and class stay and may be
// declared again, await works at the top level, the value of the last statement comes back. It runs
// inside a vm script that a SIGINT breaks off. Code after an await would not: so `await x` in a cell
// becomes `await __pale.wait(x)`, which goes on inside such a script, too, and never goes on once its
// execution was interrupted. import statements become calls of import() in the same pass.
//
// The host has a SIGINT sent only while the page says that the script is entered: what comes a
// moment too late would end node.
'use strict';

const fs = require('node:fs');
const inspector = require('node:inspector');
const net = require('node:net');
const path = require('node:path');
const util = require('node:util');
const vm = require('node:vm');
const Module = require('node:module');

const COMMANDS = 3, REPORTS = 4, PAGE = 5, CHANNEL = 6;
const ARMED_AT = 0, BUSY_AT = 4, DONE_AT = 24;
const PACKET = 32768, HEADER = 20, MESSAGE_MAX = 16 << 20;
const EXECUTE = 1, COMPLETE = 3, INSPECT = 4, INPUT = 5, INTERRUPT = 64;
const DATA = 18, REPLY = 19, ERROR = 20, DONE = 21, INPUT_WANTED = 23, REFUSED = 25;
const MORE = 1, RESULT = 2;
const OK = 0, FAILED = 1, INTERRUPTED = 2;
const TEXT_MAX = 1 << 20; // characters of a value that are shown

const global_ = globalThis;
const { setImmediate, clearInterval, Buffer, process, performance } = global_;
const ownFile = __filename;
const SCOPE = 'pale-scope';
let importHere; // import() of the main script, which looks from the directory of the start
let session;    // the inspector's
let running = null, latest = null; // executions
let current = null;                // whose code is on the stack, in the scope
let armed = false;
let fatalMark = null;

// ---------------------------------------------------------------- the host

const number = Buffer.alloc(4);
const busy = Buffer.alloc(20);
let sentSeen = 0;

function setPage(at, value) {
	number.writeUInt32LE(value);
	fs.writeSync(PAGE, number, 0, 4, at);
}

function arm(id) {
	armed = true;
	setPage(ARMED_AT, id);
	fs.readSync(PAGE, busy, 0, 20, BUSY_AT);
	if (busy.readUInt32LE(16) !== id)
		return;
	// It was asked for when no signal could be sent: now it can.
	fs.writeSync(REPORTS, '!');
	waitForSignal();
}

function waitForSignal() {
	for (const until = performance.now() + 200; performance.now() < until;)
		;
}

// Afterwards no signal is on its way: one that was sent breaks this off. (It may take its time, as it
// goes by a thread of node's; left to itself it would break off what is entered next, or end node.)
function disarm() {
	setPage(ARMED_AT, 0);
	armed = false;
	for (let i = 0; i < 10000; i++) {
		fs.readSync(PAGE, busy, 0, 20, BUSY_AT);
		if (!busy.readUInt32LE(0) && !busy.readUInt32LE(4) && !busy.readUInt32LE(8))
			break;
	}
	const sent = busy.readUInt32LE(12);

	if (sent === sentSeen)
		return;
	sentSeen = sent;
	waitForSignal();
}

function send(kind, id, value = 0, key = '', data = '', flags = 0) {
	const keyBytes = Buffer.from(String(key).slice(0, 200));
	const bytes = typeof data === 'string' ? Buffer.from(data) : data;
	const room = PACKET - HEADER - keyBytes.length;
	const again = armed ? current : null;
	let at = 0;

	if (again)
		disarm();
	do {
		const part = bytes.subarray(at, at + room);
		const packet = Buffer.alloc(HEADER + keyBytes.length + part.length);

		at += part.length;
		packet[0] = kind;
		packet[1] = flags | (at < bytes.length ? MORE : 0);
		packet.writeUInt16LE(keyBytes.length, 2);
		packet.writeUInt32LE(id, 4);
		packet.writeInt32LE(value, 8);
		packet.writeUInt32LE(part.length, 12);
		keyBytes.copy(packet, HEADER);
		packet.set(part, HEADER + keyBytes.length);
		fs.writeSync(CHANNEL, packet);
	} while (at < bytes.length);
	if (again)
		arm(again.id);
}

// Descriptors 1 and 2 as streams that have written when write() returns.
function makeOutput(fd) {
	const { Writable } = require('node:stream');
	const pause = new Int32Array(new SharedArrayBuffer(4));
	const output = new Writable({
		decodeStrings: true,
		emitClose: false,
		write(chunk, encoding, callback) {
			for (let at = 0; at < chunk.length;) {
				try {
					at += fs.writeSync(fd, chunk, at);
				} catch (error) {
					// A program that shares the pipe may have made it so.
					if (error.code !== 'EAGAIN') {
						callback(error);
						return;
					}
					Atomics.wait(pause, 0, 0, 1);
				}
			}
			callback();
		},
	});

	output.fd = fd;
	output._type = 'pipe';
	output._isStdio = true;
	output.destroySoon = output.destroy;
	output._destroy = (error, callback) => callback(error);
	return output;
}

// ---------------------------------------------------------------- executions

const SIGINT_BREAKS = { breakOnSigint: true, displayErrors: false };
const scope = new vm.Script('__pale.enter()', { filename: SCOPE });
let entered = null;

function enter() {
	const what = entered;

	entered = null;
	if (!what)
		return;
	try {
		// Before it is entered, and after it, a SIGINT would end node.
		arm(current.id);
		what();
	} finally {
		disarm();
	}
}

// The scope takes a few threads' starts: who comes by very often does without.
const OFTEN = 300, WINDOW_MS = 100;
let windowEnd = 0, windowCount = 0;

function tooOften() {
	const now = performance.now();

	if (now > windowEnd) {
		windowEnd = now + WINDOW_MS;
		windowCount = 0;
	}
	return ++windowCount > OFTEN;
}

// Runs it as run's code; true: a SIGINT broke it off.
function inScope(run, what) {
	if (current) { // in there already
		what();
		return false;
	}
	current = run;
	if (tooOften()) {
		try {
			what();
		} finally {
			current = null;
		}
		return false;
	}
	entered = what;
	try {
		scope.runInThisContext(SIGINT_BREAKS);
		return false;
	} catch (error) {
		if (error?.code !== 'ERR_SCRIPT_EXECUTION_INTERRUPTED')
			throw error;
		return true;
	} finally {
		// Broken off, it has had its signal.
		if (armed) {
			setPage(ARMED_AT, 0);
			armed = false;
		}
		fs.readSync(PAGE, busy, 0, 20, BUSY_AT);
		sentSeen = busy.readUInt32LE(12);
		current = null;
		entered = null;
	}
}

// Callbacks that are due at once, while a SIGINT still reaches them.
function runTicks() {
	process._tickCallback?.();
}

// In a callback of the event loop's, as run's code, with what follows of it.
function turn(run, what) {
	const ids = require('node:async_hooks');
	const before = ids.executionAsyncId();
	let interrupted = inScope(run, () => {
		what();
		runTicks();
	});

	if (interrupted && run.outcome?.broken)
		run.outcome = null;
	if (run.outcome && !run.told)
		interrupted = conclude(run) && interrupted;
	if (interrupted && !run.told) {
		run.cancelled = true;
		tell(run, INTERRUPTED);
	}
	// Where a callback of node's own was on the way, it has not put back whose turn it is. The way
	// of an uncaught error does.
	if (ids.executionAsyncId() !== before && !process.hasUncaughtExceptionCaptureCallback()) {
		fatalMark = new Error('interrupted');
		throw fatalMark;
	}
}

// A new session with the inspector. The one before waits no more for what was interrupted.
function connect() {
	session?.disconnect();
	session = new inspector.Session();
	session.connect();
}

function post(method, params) {
	let got;

	session.post(method, params, (error, result) => {
		got = error ? { error } : result;
	});
	return got;
}

let taken;

// The value that the inspector holds.
function take(remote) {
	if (!remote.objectId) {
		if (remote.type === 'undefined')
			return undefined;
		if (remote.subtype === 'null')
			return null;
		if (remote.type === 'bigint')
			return BigInt(remote.unserializableValue.slice(0, -1));
		if (remote.unserializableValue !== undefined)
			return Number(remote.unserializableValue);
		return remote.value;
	}
	taken = undefined;
	post('Runtime.callFunctionOn', {
		functionDeclaration: 'function __pale_take(v) { __pale.take(v) }',
		objectId: remote.objectId, arguments: [{ objectId: remote.objectId }], silent: true,
	});
	const value = taken;

	taken = undefined;
	return value;
}

// A line that begins with a brace is an object rather than a block, if it can be one.
function asObject(code) {
	if (!/^\s*{/.test(code) || /;\s*$/.test(code))
		return code;
	try {
		new vm.Script(`(${code}\n)`);
		return `(${code}\n)`;
	} catch {
		return code;
	}
}

function evaluate(run) {
	const text = asObject(transform(run.id, run.code));

	session.post('Runtime.evaluate', {
		expression: `${text}\n//# sourceURL=<cell-${run.id}>`,
		replMode: true, silent: true, objectGroup: 'cell', includeCommandLineAPI: false,
	}, (error, reply) => {
		if (run.told || run.cancelled || run.outcome)
			return;
		try {
			settle(run, error, reply);
		} catch (e) {
			run.outcome = { failure: failure(run, e) };
		}
		// The continuation of what is not the cell's own code.
		if (!current && run.outcome)
			conclude(run);
	});
}

function settle(run, error, reply) {
	if (error) {
		// It was broken off, or there is a fault of ours.
		run.outcome = { failure: failure(run, error), broken: true };
		return;
	}
	const value = take((reply.exceptionDetails?.exception) || reply.result);
	const details = reply.exceptionDetails;

	session.post('Runtime.releaseObjectGroup', { objectGroup: 'cell' });
	if (details) {
		run.outcome = { failure: failure(run, value, details) };
		return;
	}
	const entries = value === undefined ? [] : bundleOf(value, false);

	if (util.types.isPromise(entries))
		entries.then((got) => {
			run.outcome = { entries: got };
		}, (e) => {
			run.outcome = { failure: failure(run, e) };
		}).then(() => {
			if (!current && !run.told)
				conclude(run);
		});
	else
		run.outcome = { entries };
}

// Tells the outcome; false: it could not be made out after all.
function conclude(run) {
	const { entries, failure: f } = run.outcome;

	if (run.told)
		return false;
	if (f) {
		send(ERROR, run.id, f.line, f.name, `${f.message}\0${f.text}`);
		tell(run, FAILED);
		return false;
	}
	if (entries.length)
		sendBundle(run, entries, RESULT);
	tell(run, OK);
	return false;
}

function tell(run, how) {
	if (run.told)
		return;
	run.told = true;
	running = null;
	run.code = '';
	if (how === INTERRUPTED)
		send(ERROR, run.id, 0, 'Interrupted', 'the execution was interrupted\0');
	send(DONE, run.id, how);
	setPage(DONE_AT, run.id);
	if (run.cancelled)
		connect();
}

function execute(id, code) {
	const run = { id, code, displays: 0, told: false, cancelled: false, outcome: null, waits: new Set() };

	running = latest = run;
	setImmediate(() => {
		if (!run.told)
			turn(run, () => evaluate(run));
	});
}

function interrupt(id) {
	const run = running;

	if (!run || run.id !== id)
		return;
	// What waits, waits for ever.
	run.cancelled = true;
	tell(run, INTERRUPTED);
	if (process.listenerCount('SIGINT') > 0)
		process.emit('SIGINT', 'SIGINT');
}

// ---- await, in cells: __pale.wait(value, id, line, column)

function wait(value, id, line, column) {
	const run = current;

	// Of what runs in the background without being anybody's: as it is.
	if (!run)
		return value;
	return new Promise((resolve, reject) => {
		// Held, also where nothing else does: the inspector makes V8 (of node 22) abort when what it
		// waits for is collected.
		run.waits.add(resolve);
		const go = (how, got) => {
			run.waits.delete(resolve);
			if (run.cancelled)
				return;
			if (current === run) {
				how(got);
				return;
			}
			setImmediate(() => {
				if (!run.cancelled)
					turn(run, () => how(got));
			});
		};

		Promise.resolve(value).then((got) => go(resolve, got), (error) => {
			addFrame(error, `<cell ${id}>:${line}:${column}`);
			go(reject, error);
		});
	});
}

// An error that has come over an await has lost where that was.
function addFrame(error, where) {
	try {
		if (util.types.isNativeError(error) && typeof error.stack === 'string' && !error.stack.includes(where))
			error.stack += `\n    at async ${where}`;
	} catch {
		// It does not want to be changed.
	}
}

// for await (x of __pale.each(iterable, ...))
function each(iterable, id, line, column) {
	if (!current || iterable === null || iterable === undefined)
		return iterable;
	const make = iterable[Symbol.asyncIterator];
	const iterator = make ? make.call(iterable) : iterable[Symbol.iterator]();

	return {
		[Symbol.asyncIterator]() {
			return {
				next: (v) => wait(make ? iterator.next(v) : nextOf(iterator.next(v)), id, line, column),
				return: (v) => (iterator.return ? Promise.resolve(iterator.return(v)) : Promise.resolve({ value: v, done: true })),
				throw: (e) => (iterator.throw ? iterator.throw(e) : Promise.reject(e)),
			};
		},
	};
}

function nextOf({ value, done }) {
	return Promise.resolve(value).then((got) => ({ value: got, done }));
}

// ---------------------------------------------------------------- modules

let requireFrom, requireOf; // the directory that require looks from

function here() {
	try {
		return process.cwd();
	} catch {
		return '/';
	}
}

function requireHere() {
	const cwd = here();

	if (requireOf !== cwd) {
		requireOf = cwd;
		requireFrom = Module.createRequire(path.join(cwd, '[cell]'));
	}
	return requireFrom;
}

function makeRequire(main) {
	const result = (name) => requireHere()(name);

	result.resolve = Object.assign((name, options) => requireHere().resolve(name, options),
		{ paths: (name) => requireHere().resolve.paths(name) });
	result.cache = Module._cache ?? requireHere().cache;
	result.extensions = requireHere().extensions;
	result.main = main;
	return result;
}

const startedIn = here();

async function importModule(name, options) {
	const cwd = here();
	let spec = String(name);

	if (/^\.{0,2}\//.test(spec))
		spec = new URL(spec, `${require('node:url').pathToFileURL(cwd)}/`).href;
	try {
		return await (options === undefined ? importHere(spec) : importHere(spec, options));
	} catch (error) {
		// A package of the directory that the user has gone to since.
		if (error?.code !== 'ERR_MODULE_NOT_FOUND' || cwd === startedIn || spec.includes(':'))
			throw error;
		let found;

		try {
			found = requireHere().resolve(spec);
		} catch {
			throw error;
		}
		return importHere(require('node:url').pathToFileURL(found).href);
	}
}

// import {a} from 'm': with a message where there is no a.
async function importNames(name, names, options) {
	const module = await importModule(name, options);

	for (const n of names)
		if (n !== '*' && !(n in module) && !(module.default && n in Object(module.default)))
			throw new SyntaxError(`The requested module '${name}' does not provide an export named '${n}'`);
	return new Proxy(module, {
		get: (m, key) => (key === '*' ? module : key in m ? m[key] : m.default?.[key]),
		has: (m, key) => key === '*' || key in m || (m.default !== undefined && key in Object(m.default)),
	});
}

// ---------------------------------------------------------------- input

let inputWanted = null;

// A global for cells: await input('Name? '), or null at the end of input.
function input(prompt = '', { password = false } = {}) {
	const run = current || running;

	if (!run || run.told)
		return Promise.resolve(null);
	send(INPUT_WANTED, run.id, password ? 1 : 0, '', String(prompt));
	return new Promise((resolve) => {
		inputWanted = { run, resolve, before: inputWanted };
	});
}

function onInput(id, ended, line) {
	const wanted = inputWanted;

	if (!wanted || wanted.run.id !== id)
		return;
	inputWanted = wanted.before;
	wanted.resolve(ended ? null : line);
}

// ---------------------------------------------------------------- messages

let parts = [], bytes = 0;

function onMessage(kind, id, value, data) {
	if (kind === EXECUTE)
		execute(id, data.toString());
	else if (kind === COMPLETE || kind === INSPECT)
		setImmediate(ask, kind, id, value, data.toString());
	else if (kind === INPUT)
		onInput(id, value === 1, data.toString());
	else if (kind === INTERRUPT)
		interrupt(id);
}

function onData(chunk) {
	parts.push(chunk);
	bytes += chunk.length;
	while (bytes >= HEADER) {
		if (parts[0].length < HEADER)
			parts = [Buffer.concat(parts)];
		const length = HEADER + parts[0].readUInt32LE(12);

		if (bytes < length)
			return;
		const all = parts.length === 1 ? parts[0] : Buffer.concat(parts);

		parts = [all.subarray(length)];
		bytes -= length;
		onMessage(all[0], all.readUInt32LE(4), all.readInt32LE(8), all.subarray(HEADER, length));
	}
	if (!bytes)
		parts = [];
}

// ---------------------------------------------------------------- the start

function hidden(name, value) {
	Object.defineProperty(global_, name, { value, writable: true, enumerable: false, configurable: true });
}

function setGlobals() {
	const main = new Module('.', null);

	main.filename = path.join(startedIn, '[cell]');
	main.paths = Module._nodeModulePaths?.(startedIn) ?? [];
	main.loaded = false;
	hidden('module', main);
	// After the main script node puts back what was there before it.
	process.nextTick(hidden, 'module', main);
	hidden('exports', main.exports);
	hidden('require', makeRequire(main));
	for (const [name, get] of [['__filename', () => path.join(here(), `<cell ${latest?.id ?? 0}>`)], ['__dirname', here]])
		Object.defineProperty(global_, name, {
			configurable: true, enumerable: false, get,
			set(value) { Object.defineProperty(global_, name, { value, writable: true, configurable: true }); },
		});
	hidden('display', display);
	hidden('input', input);
	const meta = {
		get url() { return `${require('node:url').pathToFileURL(path.join(here(), `cell-${latest?.id ?? 0}.mjs`))}`; },
		get dirname() { return here(); },
		get filename() { return path.join(here(), `cell-${latest?.id ?? 0}.mjs`); },
		resolve: (name) => (/^(\.{0,2}\/|\w+:)/.test(name) ? new URL(name, meta.url).href
			: Module.isBuiltin(name) ? `node:${name.replace(/^node:/, '')}`
				: require('node:url').pathToFileURL(requireHere().resolve(name)).href),
	};
	const imports = (name, options) => importModule(name, options);

	imports.meta = meta;
	Object.defineProperty(global_, '__pale', {
		value: Object.freeze({ enter, wait, each, import: imports, names: importNames, take: (v) => { taken = v; } }),
	});
	Object.defineProperty(Error, 'prepareStackTrace', {
		value: prepareStackTrace, writable: true, enumerable: false, configurable: true,
	});
}

// What a cell puts off is its execution's, too: a SIGINT reaches it, and it is dropped with an execution
// that was interrupted. (A tick that puts itself off again and again would keep the loop from
// everything else.)
function setTimers() {
	const nextTick = process.nextTick;

	process.nextTick = function (callback, ...args) {
		const run = current;

		if (!run || typeof callback !== 'function')
			return nextTick.call(process, callback, ...args);
		return nextTick.call(process, (...a) => {
			if (!run.cancelled)
				callback(...a);
		}, ...args);
	};
	for (const name of ['setTimeout', 'setInterval']) {
		const original = global_[name];
		const { [name]: own } = {
			[name](callback, ...args) {
				const run = current;

				if (!run || typeof callback !== 'function')
					return original(callback, ...args);
				return original(function (...given) {
					if (run.cancelled)
						clearInterval(this);
					else
						turn(run, () => callback.apply(this, given));
				}, ...args);
			},
		};

		for (const key of Object.getOwnPropertySymbols(original)) // util.promisify
			Object.defineProperty(own, key, Object.getOwnPropertyDescriptor(original, key));
		global_[name] = own;
	}
}

function setStreams() {
	for (const [name, fd] of [['stdout', 1], ['stderr', 2]]) {
		let output;

		Object.defineProperty(process, name, {
			configurable: true, enumerable: true, get: () => (output ??= makeOutput(fd)),
		});
	}
	// The global console also tells the inspector, which keeps what was printed.
	const plain = new console.Console({ stdout: process.stdout, stderr: process.stderr });

	for (const name of Object.keys(console))
		if (typeof plain[name] === 'function' && name !== 'Console')
			console[name] = plain[name];
}

module.exports = function start(mainImport) {
	importHere = mainImport;
	process.execArgv.length = 0; // ours, not for what user code starts
	setStreams();
	setGlobals();
	setTimers();
	process.on('uncaughtException', onUncaught);
	process.on('unhandledRejection', (reason) => onUncaught(reason, 'unhandledRejection'));
	connect();
	const commands = new net.Socket({ fd: COMMANDS, readable: true, writable: false });

	commands.on('data', onData);
	commands.on('end', () => process.exit(1));
	fs.writeSync(REPORTS, `Node.js ${process.version}\n`);
	// What the first execution would have to load.
	setImmediate(() => {
		require('node:async_hooks');
		post('Runtime.evaluate', { expression: '0', replMode: true, silent: true });
		scope.runInThisContext(SIGINT_BREAKS);
	});
};
