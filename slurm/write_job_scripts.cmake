# At configuration for the build, and at installation for the prefix, which is known for certain only then.
function(write_job_scripts target programs scripts)
  set(LOCKSTEP_PROGRAMS "${programs}")
  string(REPLACE "'" "'\\''" LOCKSTEP_PROGRAMS_QUOTED "${programs}")
  string(REPLACE "'" "'\\''" LOCKSTEP_SCRIPTS_QUOTED "${scripts}")
  foreach(script IN LISTS LOCKSTEP_JOB_SCRIPTS)
    configure_file("${LOCKSTEP_JOB_SOURCE}/${script}.in" "${target}/${script}" @ONLY)
  endforeach()
endfunction()
