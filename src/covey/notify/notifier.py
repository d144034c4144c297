"""Takes what happens in all workspaces, and gives notice of some of it, as the settings of each say."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Mapping

import msgspec

from covey.config.schema import NotifySettings
from covey.notify import desktop, webhook
from covey.notify.delivery_queue import DeliveryQueue
from covey.notify.notices import Notice, NoticeOrigin, notice_of, without_text
from covey.notify.webhook import WebhookDelivery
from covey.protocol.events import Event

log = logging.getLogger(__name__)


class Notifier:
    """The one of a server. Webhooks and the desktop have a queue each: neither waits for the other."""

    def __init__(self, environ: Mapping[str, str], now: Callable[[], float] = time.time) -> None:
        self._environ = environ
        self._now = now
        self._webhooks: DeliveryQueue[WebhookDelivery] = DeliveryQueue("webhook", webhook.deliver)
        self._shown: DeliveryQueue[Notice] = DeliveryQueue("desktop notification", self._show)

    def note(self, event: Event, settings: NotifySettings, origin: NoticeOrigin) -> None:
        """Something was published in a workspace. Returns at once."""
        notice = notice_of(event, origin, self._now())
        if notice is None or notice.event not in settings.on:
            return
        if settings.webhook:
            body = msgspec.json.encode(notice if settings.include_text else without_text(notice))
            self._webhooks.put(WebhookDelivery(settings.webhook, settings.webhook_secret, body))
        if settings.desktop and _is_worth_showing(notice, settings.after_s):
            self._shown.put(notice)

    async def _show(self, notice: Notice) -> None:
        words = await asyncio.to_thread(desktop.command, notice, self._environ.get("PATH", os.defpath))
        if words is None:
            log.warning("there is no program here that shows desktop notifications (notify-send, osascript)")
            return
        await desktop.show(words, self._environ)

    async def aclose(self) -> None:
        await self._webhooks.aclose()
        await self._shown.aclose()


def _is_worth_showing(notice: Notice, after_s: float) -> bool:
    """Whoever waits for a short run is still looking. A prompt that was folded in ends with the run that took it."""
    return notice.event == "asked" or (notice.folded_into is None and (notice.duration_s or 0.0) >= after_s)
