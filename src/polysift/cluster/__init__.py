"""The same engine by the workers of a cluster; the only room that imports Ray.

``partitions`` cuts the shards into the data of tasks, ``tasks`` has the functions that workers run,
and ``scheduler`` runs them on a ``Cluster``, again where a worker is lost. ``held_rows`` keeps
references to what the cluster holds, and makes a lost state again. With these, ``engine`` is the
engine that a solver sees, and ``backend`` the backend of a fit, search or prediction. None of them
imports Ray: that is left to ``ray_cluster``, a ``Cluster`` of Ray's workers, and ``ray_data``, a
Ray Dataset as a source. ``future_workers`` stand for a cluster that does not run yet, in a plan;
``last_words`` speaks for a process that Ray has ended.
"""
