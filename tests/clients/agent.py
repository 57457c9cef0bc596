"""LiveKit's outbound example (livekit-agents 1.8) without its dial: this agent is rung for."""

import json

from livekit import agents, api
from livekit.agents import room_io
from livekit.agents.utils.participant import wait_for_participant_attribute
from livekit.plugins import openai

ANSWERED = {"attribute": "sip.callStatus", "value": "active"}


class Caller(agents.Agent):
    @agents.function_tool()
    async def end_call(self):
        """Hangs up. To be called when the goodbye was said."""
        ctx = agents.get_job_context()
        who = json.loads(ctx.room.metadata)["callee_identity"]
        leg = api.RoomParticipantIdentity(room=ctx.room.name, identity=who)
        await ctx.api.room.remove_participant(leg)  # not the room: ringonce deletes that
        ctx.shutdown("hung up")


async def entrypoint(ctx: agents.JobContext):
    await ctx.connect()  # at once: ringonce rings when it sees the agent in the room
    who = json.loads(ctx.room.metadata)["callee_identity"]
    session = agents.AgentSession(llm=openai.realtime.RealtimeModel())
    session.on("close", lambda _: ctx.shutdown("the callee left"))
    link = room_io.RoomOptions(participant_identity=who)  # and ends when the callee leaves
    try:
        await ctx.wait_for_participant(identity=who)  # its leg joins while the phone still rings
        await session.start(Caller(instructions=ctx.job.metadata), room=ctx.room, room_options=link)
        await wait_for_participant_attribute(ctx.room, identity=who, **ANSWERED)
        await session.generate_reply(instructions="Greet, and say why you call.")
    except RuntimeError:  # the callee or the room is gone
        ctx.shutdown("no conversation")


if __name__ == "__main__":
    agents.cli.run_app(agents.WorkerOptions(entrypoint_fnc=entrypoint, agent_name="caller"))
