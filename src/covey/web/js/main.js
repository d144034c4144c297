// The beginning: a code or a token, then one workspace, one session, one app.

import { Api, ApiError } from './api.js';
import { App } from './app.js';
import { bindActions } from './actions.js';
import { confirm } from './dialogs.js';
import { Dashboard } from './dashboard.js';
import { byId } from './dom.js';
import { bindKeys } from './keys.js';
import { connectHub, isShared } from './link.js';
import { guardLinks } from './links.js';
import { browserName, codeFromFragment, redeem, showLogin, token } from './login.js';
import { keep, kept, keptJson } from './store.js';

/** Where the fragment leads. */
function routeNow() {
  const [, workspace = '', session = '', message = ''] = /^#\/w\/([^/]*)(?:\/s\/([^/]*))?(?:\/([^/]*))?$/.exec(location.hash) ?? [];
  return { workspace: decodeURIComponent(workspace), session: decodeURIComponent(session), message: decodeURIComponent(message), isHome: location.hash === '#/home' };
}

async function start() {
  const code = codeFromFragment();
  let first = '';
  if (code) {
    try {
      first = (await redeem(code)).workspaceId;
    } catch (error) {
      if (!token()) { showLogin(error instanceof ApiError ? error.message : String(error)); return; }
    }
  }
  if (!token()) { showLogin(); return; }
  await begin(first);
}

/** @param {string} first */
async function begin(first) {
  document.body.dataset.screen = 'app';
  const port = connectHub();
  const app = new App(token(), port);
  const dashboard = new Dashboard(app, byId('dashboard'));
  const route = routeNow();
  const workspace = first || route.workspace || kept('workspace') || await someWorkspace(app.api);
  app.route = { workspace, session: route.session, message: route.message };
  let isOut = false;
  app.api.onRefused = app.shell.onRefused = (error) => {
    if (error.status !== 401) { app.status.refused(error.message); return; }
    if (isOut) return;
    isOut = true;
    port.postMessage({ type: 'bye' });
    showLogin(error.message);
  };
  app.shell.onActivity = (frames) => dashboard.take(frames);
  const hello = () => port.postMessage({ type: 'hello', token: token(), workspaceId: app.route.workspace, path: keptJson('workspaces')?.[app.route.workspace] ?? '', name: browserName(), activity: isShared() });
  guardLinks(confirm);
  bindActions(app, dashboard);
  bindKeys(app);
  bindWaking(app, hello);
  globalThis.addEventListener('hashchange', () => arrive(app, dashboard, hello));
  if (kept('panel')) app.review.toggle(true);
  app.showSession(route.session, '');
  hello();
  if (route.isHome || !workspace) dashboard.show(); else keep('workspace', workspace);
  if (route.message) void app.transcript.find(route.message);
  byId('loading')?.remove();
  app.draw();
  if (!app.isTouch) app.composer.focus();
}

/** Somewhere to begin: whatever is open. @param {Api} api */
async function someWorkspace(api) {
  try {
    return (await api.workspaces())[0]?.id ?? '';
  } catch { return ''; }
}

/** @param {App} app @param {Dashboard} dashboard @param {() => void} hello */
function arrive(app, dashboard, hello) {
  const code = codeFromFragment();
  if (code) { void redeem(code).then(() => location.reload()); return; }
  const route = routeNow();
  if (route.isHome) { dashboard.show(); return; }
  dashboard.hide();
  if (route.workspace && route.workspace !== app.route.workspace) { // another workspace is another app
    keep('workspace', route.workspace);
    location.reload();
    return;
  }
  void hello;
  app.route = { workspace: app.route.workspace, session: route.session, message: route.message };
  app.showSession(route.session, route.message);
}

/** A tab that comes back wants to know what is, at once. @param {App} app @param {() => void} hello */
function bindWaking(app, hello) {
  const { port } = app;
  const wake = () => { if (!document.hidden) port.postMessage({ type: 'wake' }); };
  document.addEventListener('visibilitychange', () => { port.postMessage({ type: 'hidden', isHidden: document.hidden }); wake(); });
  globalThis.addEventListener('online', wake);
  globalThis.addEventListener('focus', wake);
  globalThis.addEventListener('pagehide', () => port.postMessage({ type: 'bye' }));
  globalThis.addEventListener('pageshow', (event) => { if (event.persisted) hello(); });
  const inset = () => {
    const view = globalThis.visualViewport;
    const hidden = view ? Math.max(0, innerHeight - view.height - view.offsetTop) : 0;
    document.documentElement.style.setProperty('--keyboard', `${Math.round(hidden)}px`);
  };
  globalThis.visualViewport?.addEventListener('resize', inset);
}

void start();
